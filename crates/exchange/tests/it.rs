//! The tests of this room on documents of other programs, as one program, which is linked once.

mod csv;
mod fio;
mod fio_field;
mod fio_surroundings;
mod openmetrics;
