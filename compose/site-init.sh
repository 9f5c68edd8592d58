#!/bin/sh
# Concord's three logins at a demo site. Runs once, on an empty server; what they may do with the replicated tables
# is granted later, by provisioning. \getenv keeps the passwords out of every argument list.
set -eu

psql --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
\getenv installer_password INSTALLER_PASSWORD
\getenv reader_password READER_PASSWORD
\getenv applier_password APPLIER_PASSWORD
SELECT current_database() AS site \gset

CREATE ROLE concord_installer LOGIN PASSWORD :'installer_password';
CREATE ROLE concord_reader LOGIN PASSWORD :'reader_password';
CREATE ROLE concord_applier LOGIN PASSWORD :'applier_password';

REVOKE ALL ON DATABASE :"site" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"site" TO concord_reader, concord_applier;
-- The installer creates the schema `concord`, and owns the tables because it puts triggers on them.
ALTER DATABASE :"site" OWNER TO concord_installer;

-- What Concord keeps belongs to a role that can do nothing else, as which the installer may act.
SELECT 'concord_owner_of_' || current_database() AS owner \gset
CREATE ROLE :"owner" NOLOGIN NOINHERIT;
GRANT :"owner" TO concord_installer;

-- Only a superuser can grant it: application triggers stay silent while the applier writes.
GRANT SET ON PARAMETER session_replication_role, deadlock_timeout TO concord_applier;
SQL
