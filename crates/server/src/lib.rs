//! Puts a virtual drive where real hosts find it.

pub mod medium;
