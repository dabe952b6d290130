-- What may make the figures of a run better or worse than they are elsewhere: a list of JSON. Runs before this step have it in their records
-- alone, if they have any.
ALTER TABLE run ADD COLUMN notes TEXT NOT NULL DEFAULT '[]';

UPDATE run SET notes = json_extract(record, '$.target.notes')
WHERE CASE WHEN json_valid(record) THEN json_type(record, '$.target.notes') END = 'array';
