"""One job's orders and its report."""
