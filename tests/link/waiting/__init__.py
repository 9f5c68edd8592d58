"""What waits at a site: held conflicts, refused rows, versions from the future."""
