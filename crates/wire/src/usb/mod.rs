//! USB 2.0 and 3.2: setup packets and descriptors.
