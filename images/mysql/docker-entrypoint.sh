#!/bin/bash
# Starts MariaDB; on an empty data folder it first makes the accounts the environment asks for, as the well-known image does:
# MYSQL_ROOT_PASSWORD, MYSQL_DATABASE, MYSQL_USER, MYSQL_PASSWORD, and every /docker-entrypoint-initdb.d/*.sql.
set -euo pipefail
data=/var/lib/mysql
trap 'exit 143' TERM

# quoted TEXT: TEXT inside an SQL string
quoted() {
  local text=${1//\\/\\\\}
  printf '%s' "${text//\'/\'\'}"
}

accounts() {
  local root user
  root=$(quoted "$MYSQL_ROOT_PASSWORD")
  echo "FLUSH PRIVILEGES;"
  echo "ALTER USER root@localhost IDENTIFIED BY '$root';"
  echo "CREATE USER root@'%' IDENTIFIED BY '$root';"
  echo "GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;"
  if [ -n "${MYSQL_DATABASE:-}" ]; then
    printf 'CREATE DATABASE `%s`;\nUSE `%s`;\n' "$MYSQL_DATABASE" "$MYSQL_DATABASE"
  fi
  if [ -n "${MYSQL_USER:-}" ]; then
    user=$(quoted "$MYSQL_USER")
    echo "CREATE USER '$user'@'%' IDENTIFIED BY '$(quoted "${MYSQL_PASSWORD:-}")';"
    [ -z "${MYSQL_DATABASE:-}" ] || printf "GRANT ALL ON \`%s\`.* TO '%s'@'%%';\n" "$MYSQL_DATABASE" "$user"
  fi
  local script
  for script in /docker-entrypoint-initdb.d/*.sql; do
    [ ! -f "$script" ] || cat "$script"
  done
}

if [ "$(id -u)" = 0 ]; then
  mkdir -p "$data" /run/mysqld
  chown mysql:mysql "$data" /run/mysqld
fi
if [ ! -e "$data/.complete" ]; then
  if [ -z "${MYSQL_ROOT_PASSWORD:-}" ]; then
    echo "the data folder is empty: MYSQL_ROOT_PASSWORD must be set" >&2
    exit 1
  fi
  # What an interrupted first start left behind is of no use.
  find "$data" -mindepth 1 -delete
  mariadb-install-db --user=mysql --datadir="$data" --skip-test-db --auth-root-authentication-method=normal >/dev/null
  accounts | mariadbd --user=mysql --bootstrap --datadir="$data"
  touch "$data/.complete"
fi
[ $# -gt 0 ] || set -- mariadbd
exec "$@" --user=mysql --datadir="$data" --bind-address='*'
