//! Promises that span files, in one program: it is linked once, and its tests share the machine's threads.

mod airline;
mod bad_input;
mod classes_and_counts;
mod gradients;
mod hostile;
mod limits;
mod narx;
mod old_files;
mod properties;
mod sinc;
mod sklearn;
mod tables;
mod times;
