//! The usbredir protocol 0.7.
