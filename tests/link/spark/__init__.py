"""The carrier of the rows: the driver alone, Spark on one machine, a cluster, or a Connect server."""
