//! Job files of this project, for options that those of fio hardly use. They are run as they are, past the page cache.

/// Names and texts.
pub(super) const FILES: &[(&str, &str)] = &[
    ("sequence", "[a]\nrw=read\nbs=16k\nsize=24m\noffset=8m\nnumber_ios=1000\n"),
    ("sequence-round", "[a]\nrw=write\nbs=64k\nsize=8m\nio_size=20m\n"),
    ("sequence-deep", "[a]\nrw=write\nbs=12k\nsize=12m\nioengine=libaio\niodepth=4\n"),
    ("clones-apart", "[a]\nrw=write\nbs=32k\nsize=8m\noffset_increment=8m\nnumjobs=4\n"),
    ("holes", "[a]\nrw=read:4k\nbs=4k\nsize=16m\noffset=64m\n"),
    ("holes-uneven", "[a]\nrw=write:36k\nbs=12k\nsize=9m\n"),
    ("backwards", "[a]\nrw=read:-8k\nbs=4k\nsize=16m\n"),
    ("backwards-far", "[a]\nrw=read:-64k\nbs=16k\nsize=16m\nio_size=40m\n"),
    ("mix-sequential", "[a]\nrw=rw\nrwmixread=70\nbs=4k\nsize=64m\n"),
    (
        "mix-sizes",
        "[a]\nrw=randrw\nrwmixwrite=20\nbs=4k,16k\nsize=512m\nioengine=libaio\niodepth=8\nnorandommap\n",
    ),
    ("mix-two-jobs", "[a]\nrw=randread\nbs=8k\nsize=64m\n[b]\nrw=write\nbs=64k\noffset=512m\nsize=32m\n"),
    ("range", "[a]\nrw=randread\nbsrange=4k-64k\nsize=512m\nnorandommap\n"),
    ("range-uneven", "[a]\nrw=randwrite\nbsrange=3k-10k\nsize=128m\nnorandommap\n"),
    (
        "range-near-its-end",
        "[a]\nrw=randread\nbsrange=4k-128k\nsize=1m\nio_size=512m\nnorandommap\nrandrepeat=0\n",
    ),
    (
        "split",
        "[a]\nrw=randread\nbssplit=4k/60:16k/25:64k/15\nsize=1g\nnorandommap\nioengine=libaio\niodepth=4\n",
    ),
    ("split-sequential", "[a]\nrw=write\nbssplit=4k/70:64k/30\nsize=1g\n"),
    ("aligned", "[a]\nrw=randread\nbs=4k\nba=16k\nsize=128m\nio_size=64m\n"),
    ("aligned-finely", "[a]\nrw=randrw\nbs=16k\nba=4k\nsize=256m\n"),
    (
        "aligned-zones",
        "[a]\nrw=randwrite\nbs=4k\nba=16k\nrandom_distribution=zoned:50/5:30/15:20/80\nsize=512m\nio_size=64m\n",
    ),
    ("ramp", "[a]\nrw=randread\nbs=4k\nrate_iops=2000\nramp_time=2\nsize=32m\nio_size=32m\n"),
    ("uniform", "[a]\nrw=randread\nbs=4k\nnorandommap\nsize=64m\n"),
    ("uniform-rest", "[a]\nrw=randread\nbs=12k\nnorandommap\nsize=1m\nio_size=64m\nrandrepeat=0\n"),
    ("once-rest", "[a]\nrw=randread\nbs=12k\nsize=33m\n"),
    ("once-part", "[a]\nrw=randwrite\nbs=4k\nsize=256m\nio_size=64m\n"),
    ("zipf", "[a]\nrw=randread\nbs=4k\nrandom_distribution=zipf:1.2\nsize=128m\n"),
    ("zipf-flat", "[a]\nrw=randread\nbs=4k\nrandom_distribution=zipf:0.6\nsize=128m\n"),
    ("pareto", "[a]\nrw=randread\nbs=4k\nrandom_distribution=pareto:0.2\nsize=128m\n"),
    ("zoned", "[a]\nrw=randwrite\nbs=4k\nrandom_distribution=zoned:60/10:30/20:10/70\nsize=128m\n"),
    ("rests", "[a]\nrw=randread\nbs=4k\nthinktime=10000\nthinktime_blocks=16\nsize=32m\n"),
    ("rates", "[a]\nrw=randrw\nbs=4k,8k\nrate_iops=1000,500\nnorandommap\nsize=64m\nio_size=16m\n"),
];
