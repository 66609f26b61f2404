//! hardest
