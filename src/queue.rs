//! Byte-bounded queue with local overflow.
