//! Scripts for the drive.
//!
//! The device is whole, the media are in memory; only the host is played.
