#!/usr/bin/env bash
# J1 in PostgreSQL: two agents claim jobs past locked groups with SKIP LOCKED, a
# thousand groups of limit 1, 1, 8 and 64 at a time, in order of keys. The row
# lock of a group is the claim; in the same transaction the jobs are deleted and
# as many of the same groups put in again. Nothing waits for a disk.
#
# Needs PostgreSQL's own programs; started as root it runs them as `postgres`.
#
# Usage: benches/versus/skip_locked.sh [seconds for each, 5]
set -euo pipefail

seconds=${1:-5}
if [ "$(id -u)" = 0 ]; then
    work=$(mktemp -d)
    cp "$0" "$work/run"
    chown -R postgres "$work"
    cd /
    status=0
    su postgres -c "bash '$work/run' $seconds" || status=$?
    rm -rf "$work"
    exit "$status"
fi

work=$(mktemp -d)
stop() {
    pg_ctl -D "$work/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap stop EXIT
initdb -D "$work/data" -A trust >/dev/null
pg_ctl -D "$work/data" -w -l "$work/log" start -o "-k $work -h '' \
    -c fsync=off -c synchronous_commit=off -c full_page_writes=off" >/dev/null
export PGHOST=$work PGDATABASE=postgres

psql -q <<'SQL'
CREATE TABLE grp (id int PRIMARY KEY);
CREATE TABLE job (key bigserial PRIMARY KEY, grp int NOT NULL);
CREATE INDEX ON job (grp, key);
INSERT INTO grp SELECT generate_series(0, 999);
INSERT INTO job (grp) SELECT n % 1000 FROM generate_series(0, 7999) n;
ANALYZE;
SQL
cat >"$work/claim.sql" <<'SQL'
WITH claimed AS (
    SELECT j.key, j.grp FROM job j JOIN grp g ON g.id = j.grp
    WHERE NOT EXISTS (SELECT FROM job b WHERE b.grp = j.grp AND b.key < j.key)
    ORDER BY j.key LIMIT :n FOR UPDATE OF g SKIP LOCKED
), finished AS (
    DELETE FROM job USING claimed WHERE job.key = claimed.key RETURNING job.grp
)
INSERT INTO job (grp) SELECT grp FROM finished;
SQL
for n in 1 8 64; do
    last() { psql -Atqc 'SELECT last_value FROM job_key_seq'; }
    before=$(last)
    pgbench -n -M prepared -c 2 -j 2 -D n=$n -T "$seconds" -f "$work/claim.sql" >/dev/null
    jobs=$(($(last) - before))
    echo "claim $n: $jobs jobs in $seconds s, $((seconds * 1000000000 / jobs)) ns a job"
done
