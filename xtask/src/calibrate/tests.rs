//! The short form of the campaign: few runs on simulated time, with seeds, so that the outcome is the same everywhere. Its bounds
//! leave room for few runs; those of the campaign are what is wanted.

use super::systems::{AR_90, INDEPENDENT, LEVELS, Luns, SINE};
use super::trials::Campaign;
use super::{coverage, equal, findings};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn campaign() -> Campaign {
    Campaign::new(Arc::new(AtomicBool::new(false))).unwrap()
}
