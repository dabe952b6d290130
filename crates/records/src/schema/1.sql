-- What a setup is: the same row for all runs that found it alike.
CREATE TABLE setup (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    drive TEXT NOT NULL,
    facts TEXT NOT NULL, -- an object of JSON, names in order
    UNIQUE (name, drive, facts)
) STRICT;

-- A number is never given twice, so that one that was noted down stays that run's.
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    setup INTEGER NOT NULL REFERENCES setup (id),
    label TEXT,
    kind TEXT NOT NULL,
    began_unix_s INTEGER NOT NULL,
    version TEXT NOT NULL,
    command_line TEXT NOT NULL, -- a list of JSON
    seed INTEGER NOT NULL, -- 64 bits without a sign
    interrupted INTEGER NOT NULL,
    record TEXT NOT NULL -- as --json prints it
) STRICT;

CREATE TABLE result (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    transport TEXT NOT NULL,
    job TEXT NOT NULL,
    depth INTEGER NOT NULL,
    error TEXT, -- why there are no figures, which are all null then
    iops REAL,
    iops_low REAL,
    iops_high REAL,
    mb_per_s REAL,
    mean_us REAL,
    p50_us REAL,
    p99_us REAL,
    p999_us REAL,
    max_us REAL,
    ios INTEGER,
    errors INTEGER,
    digest TEXT
) STRICT;

CREATE INDEX result_of_run ON result (run);

CREATE TABLE round (
    result INTEGER NOT NULL REFERENCES result (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    iops REAL NOT NULL,
    PRIMARY KEY (result, number)
) STRICT, WITHOUT ROWID;
