"""The rules that decide: policies, resolvers, merging, unique and foreign keys, brakes, repairs, first loads.

They are pure functions, and know neither SQL nor Spark.
"""
