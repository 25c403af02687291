//! The real program, each command, format and exit code, in fresh folders.

mod commands;
mod doubts;
mod explore;
mod failures;
mod forecast;
mod formats;
mod inputs;
mod interrupted;
mod program;
mod recipes;
mod regress;
mod reproduce;
mod scores;
mod search;
mod spaces;
