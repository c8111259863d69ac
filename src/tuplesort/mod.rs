//! The shared tuplesort.
