//! Scripts for the drive.
