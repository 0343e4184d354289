-- The views of a run for DuckDB, with explicit types: an ACL that was not read stays apart from one without grants.
-- Written by `make docs` from the types of the lines. Set the run's folder, a directory or s3://; then .read this file.
-- A run that is not complete has files that do not count: `auditor sql` leaves them out, and this file does not.
SET VARIABLE run = 'RUN';

-- a row for each listed object
CREATE OR REPLACE VIEW objects AS SELECT
  "key",
  "prefix1",
  "version_id",
  "etag",
  "size",
  "last_modified",
  "storage_class",
  "owner",
  "acl_state",
  "public_grant",
  "acl",
  "head_state",
  "head",
  "outcome",
  "changed",
  "public",
  "verdict",
  "rules",
  "hashed",
  "latest",
  "audience",
  "reasons",
  "since",
  "exception",
  "read_at",
  "dormant",
  regexp_extract(filename, '/bucket=([^/]+)/', 1) AS "bucket",
  regexp_extract(filename, '/run=([^/]+)/', 1) AS "run"
FROM read_json(getvariable('run') || '/*/part-*.jsonl.gz', format = 'newline_delimited', compression = 'gzip', maximum_object_size = 1048576, filename = true, columns = {
    "key": 'VARCHAR',
    "prefix1": 'VARCHAR',
    "version_id": 'VARCHAR',
    "etag": 'VARCHAR',
    "size": 'BIGINT',
    "last_modified": 'VARCHAR',
    "storage_class": 'VARCHAR',
    "owner": 'VARCHAR',
    "acl_state": 'VARCHAR',
    "public_grant": 'BOOLEAN',
    "acl": 'STRUCT("owner" VARCHAR, "grants" STRUCT("grantee" VARCHAR, "permission" VARCHAR)[], "unread" STRUCT("action" VARCHAR, "code" VARCHAR), "skipped" VARCHAR)',
    "head_state": 'VARCHAR',
    "head": 'STRUCT("etag" VARCHAR, "content_length" BIGINT, "last_modified" VARCHAR, "content_type" VARCHAR, "content_encoding" VARCHAR, "content_disposition" VARCHAR, "content_language" VARCHAR, "cache_control" VARCHAR, "expires" VARCHAR, "metadata" JSON, "missing_meta" BIGINT, "version_id" VARCHAR, "storage_class" VARCHAR, "server_side_encryption" VARCHAR, "sse_kms_key_id" VARCHAR, "bucket_key_enabled" BOOLEAN, "sse_customer_algorithm" VARCHAR, "checksum_type" VARCHAR, "checksum_crc32" VARCHAR, "checksum_crc32c" VARCHAR, "checksum_crc64nvme" VARCHAR, "checksum_sha1" VARCHAR, "checksum_sha256" VARCHAR, "checksum_sha512" VARCHAR, "checksum_md5" VARCHAR, "checksum_xxhash64" VARCHAR, "checksum_xxhash3" VARCHAR, "checksum_xxhash128" VARCHAR, "website_redirect_location" VARCHAR, "replication_status" VARCHAR, "parts_count" BIGINT, "tag_count" BIGINT, "object_lock_mode" VARCHAR, "object_lock_retain_until_date" VARCHAR, "object_lock_legal_hold_status" VARCHAR, "object_lock_event_hold" VARCHAR, "object_lock_event_hold_duration_days" BIGINT, "object_lock_event_hold_duration_years" BIGINT, "restore" VARCHAR, "archive_status" VARCHAR, "expiration" VARCHAR, "unread" STRUCT("action" VARCHAR, "code" VARCHAR), "skipped" VARCHAR)',
    "outcome": 'VARCHAR',
    "changed": 'BOOLEAN',
    "public": 'BOOLEAN',
    "verdict": 'VARCHAR',
    "rules": 'VARCHAR[]',
    "hashed": 'BOOLEAN',
    "latest": 'BOOLEAN',
    "audience": 'VARCHAR[]',
    "reasons": 'VARCHAR[]',
    "since": 'VARCHAR',
    "exception": 'VARCHAR',
    "read_at": 'STRUCT("acl" VARCHAR, "head" VARCHAR, "acl_from" VARCHAR, "head_from" VARCHAR)',
    "dormant": 'STRUCT("acl" STRUCT("owner" VARCHAR, "grants" STRUCT("grantee" VARCHAR, "permission" VARCHAR)[]), "at" VARCHAR)'
  })
WHERE contains(filename, '/objects/part-');

-- a row for each finding of a rule
CREATE OR REPLACE VIEW findings AS SELECT
  "fingerprint",
  "rule",
  "severity",
  "key",
  "version_id",
  "grantee",
  "permission",
  "message",
  "verdict",
  "since",
  "exception",
  regexp_extract(filename, '/bucket=([^/]+)/', 1) AS "bucket",
  regexp_extract(filename, '/run=([^/]+)/', 1) AS "run"
FROM read_json(getvariable('run') || '/*/part-*.jsonl.gz', format = 'newline_delimited', compression = 'gzip', maximum_object_size = 1048576, filename = true, columns = {
    "fingerprint": 'VARCHAR',
    "rule": 'VARCHAR',
    "severity": 'VARCHAR',
    "key": 'VARCHAR',
    "version_id": 'VARCHAR',
    "grantee": 'VARCHAR',
    "permission": 'VARCHAR',
    "message": 'VARCHAR',
    "verdict": 'VARCHAR',
    "since": 'VARCHAR',
    "exception": 'VARCHAR'
  })
WHERE contains(filename, '/findings/part-');

-- a row for each object with a fact that could not be read
CREATE OR REPLACE VIEW undecided AS SELECT
  "key",
  "version_id",
  "unread",
  "rules",
  regexp_extract(filename, '/bucket=([^/]+)/', 1) AS "bucket",
  regexp_extract(filename, '/run=([^/]+)/', 1) AS "run"
FROM read_json(getvariable('run') || '/*/part-*.jsonl.gz', format = 'newline_delimited', compression = 'gzip', maximum_object_size = 1048576, filename = true, columns = {
    "key": 'VARCHAR',
    "version_id": 'VARCHAR',
    "unread": 'STRUCT("action" VARCHAR, "code" VARCHAR)[]',
    "rules": 'VARCHAR[]'
  })
WHERE contains(filename, '/undecided/part-');
