-- A file of the first schema, as the first version of the program left it: two runs of one setup, one of which failed on BOT.
PRAGMA application_id = 1969320811;
PRAGMA user_version = 1;
CREATE TABLE setup (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    drive TEXT NOT NULL,
    facts TEXT NOT NULL, -- an object of JSON, names in order
    UNIQUE (name, drive, facts)
) STRICT;
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
INSERT INTO setup VALUES (1, '2-1', 'Some Drive, serial number 1', '{"driver":"uas","firmware":"1.0"}');
INSERT INTO run VALUES (1, 1, 'before', 'measured', 1700000000, '0.1.0', '["uaskit","bench","2-1"]', -1, 0, '{"rows":[]}');
INSERT INTO run VALUES (2, 1, NULL, 'simulated', 1700000001, '0.1.0', '[]', 1, 1, '{}');
INSERT INTO result VALUES
    (1, 1, 'uas', '4K random read', 32, NULL, 1000.0, 990.0, 1010.0, 4.096, 900.5, 850.0, 2000.0, 3000.0, 4000.0, 3000, 1, NULL),
    (2, 1, 'bot', '4K random read', 32, 'it was refused', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, 2, 'uasp', '4K random read', 1, NULL, 5.0, NULL, NULL, 6.0, 7.0, NULL, NULL, NULL, 8.0, 9, 0, '00000000000000ff');
INSERT INTO round VALUES (1, 1, 995.0), (1, 2, 1005.0);
