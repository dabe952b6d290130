-- How latencies are distributed: a list of JSON of pairs, percent of requests and the microseconds that they took at most. Null where it is
-- not known, as in all runs before this step.
ALTER TABLE result ADD COLUMN percentiles_us TEXT;
