"""The rows that wait at a site: held conflicts, refused rows, versions from the future."""
