//! The tests of the history beside the unit tests of this room.

mod history;
