#!/bin/sh
# Two databases with an owner each: Airflow's own, and the Concord repository. Runs once, on an empty server.
# \getenv takes the passwords from the environment, so that they stand in no argument list.
set -eu

psql --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
\getenv airflow_password AIRFLOW_DB_PASSWORD
\getenv concord_password CONCORD_DB_PASSWORD

CREATE ROLE airflow LOGIN PASSWORD :'airflow_password';
CREATE DATABASE airflow OWNER airflow;
REVOKE ALL ON DATABASE airflow FROM PUBLIC;

CREATE ROLE concord LOGIN PASSWORD :'concord_password';
CREATE DATABASE concord OWNER concord;
REVOKE ALL ON DATABASE concord FROM PUBLIC;
SQL
