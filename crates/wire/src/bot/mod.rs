//! USB Mass Storage Class, Bulk-Only Transport 1.0.
