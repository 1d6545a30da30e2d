//! A root of another application: looked at with `inspect --xum`, and taken over with `import`. The roots are
//! small, synthetic ones, built file by file.

mod builder;
mod changing;
mod evidence;
mod import;
mod import_left;
mod import_steps;
mod large;
mod matrix;
mod secrets;
mod situations;
