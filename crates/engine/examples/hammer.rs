//! Random 4 KiB reads on one processor, as fast as the engine can: the benchmark's counterpart to one fio job.
//!
//! `hammer PATH direct|buffered sync|threads|aio|uring|free DEPTH BATCH SECONDS CPU` prints one JSON object: `ops_per_s`, `cpu_ns_per_op`, `in_flight`, …
//! `free` lets the engine choose as rdsk does. BATCH is how many completions a wait asks for, or `default`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the benchmark reads its output, and people the trials"
)]

use rdsk_engine::{
    CacheCheck, Engine as _, EnginePolicy, Flow, Job, Limits, Progress, RealEngine, WaitBatch,
};
use rdsk_model::{EngineKind, IoPath, Pattern, StopFlag, Workload};
use rdsk_targets::{Access, Permission, Roots, claim, examine};
use std::error::Error;

#[expect(clippy::cast_precision_loss, reason = "rates for people")]
fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, io_path, engine, depth, batch, seconds, cpu] = words.as_slice() else {
        return Err(
            "usage: hammer PATH direct|buffered sync|threads|aio|uring|free DEPTH BATCH SECONDS CPU".into()
        );
    };
    let roots = Roots::default();
    let claim = claim(examine(path, &roots)?, Access::Read, &Permission::default(), &roots)?;
    let workload = Workload {
        engine: if engine == "free" { EngineKind::Uring } else { engine.parse()? },
        path: io_path.parse::<IoPath>()?,
        pattern: Pattern::Random,
        block_bytes: 4096,
        align_bytes: 4096,
        queue_depth: depth.parse()?,
        ..Workload::sequential_read(claim.size_bytes())
    };
    let claims = [claim];
    let job = Job {
        begin_bytes: 0,
        first_position: 0,
        workload: &workload,
        claims: &claims,
        limits: Limits {
            max_bytes: None,
            max_ops: None,
            max_elapsed_ns: seconds.parse::<u64>()? * 1_000_000_000,
        },
        visit: 0,
        cache_check: CacheCheck::Span,
        window_ns: 100_000_000,
        pin_cpus: &[cpu.parse()?],
        stop: StopFlag::new(),
    };
    let policy = if engine == "free" { EnginePolicy::Fastest } else { EnginePolicy::Requested };
    let mut engine = RealEngine { policy, ..RealEngine::default() };
    engine.wait_batch = match batch.as_str() {
        "default" => engine.wait_batch,
        count => WaitBatch::Fixed(count.parse()?),
    };
    let mut session = engine.open(&job)?;
    session.prepare()?;
    let run = session.run(&mut |_: &Progress| Flow::Continue)?;
    session.settle()?;
    if let Some(error) = run.errors.first() {
        return Err(error.message.clone().into());
    }
    for trial in &run.issuing.trials {
        eprintln!("{trial:?}");
    }
    println!(
        "{{\"ops_per_s\": {:.0}, \"cpu_ns_per_op\": {:.1}, \"in_flight\": {:.3}, \"p99_ns\": {}, \"engine\": \"{}\", \"notes\": {}}}",
        run.ops as f64 * 1e9 / run.elapsed_ns as f64,
        (run.cpu.user + run.cpu.system) as f64 / run.ops as f64,
        run.latency_sum_ns as f64 / run.elapsed_ns as f64,
        run.histogram.quantile(0.99).unwrap_or(0),
        run.engine,
        run.notes.len(),
    );
    Ok(())
}
