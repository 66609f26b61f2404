//! `exmy vectors`: prints cases of any operation on any formats.

use crate::settings::{Options, quiet_pipe, remark_on_function};
use clap::Args;
use exmy::error::{Error, Result};
use exmy::gemm::unit::Unit;
use exmy::round::Profile;
use exmy::vectors::cases::{Cases, Coverage, Request, Style, TestLevel, write};
use exmy::vectors::function::TestFunction;
use exmy::vectors::tiles::{Tiles, TilesRequest};
use std::io::{IsTerminal, Write, stdout};

/// Print test cases of arithmetic, or tiles of a matrix unit, with their results
///
/// Prints cases with the right results and flags, as `exmy verify` reads them.
///
/// Operands are special exponents times special significands in all combinations, beside each
/// the same with operands replaced by weighted random ones. Conversions also get every value of the target,
/// every midpoint and their neighbours. Sums, products, quotients and mulAdd also get operands whose exact
/// result lies a last bit beside a midpoint, or around the thresholds of overflow and underflow. Where all
/// operands are fewer, all are taken. The same arguments print the same bytes everywhere.
///
/// Under a stochastic mode (srN) the N-bit random integer stands behind the operands: the top bits
/// of the words of the Philox4x32-10 stream "golden" under --seed.
///
/// Files of the styles readmemh, sv, c and json begin with the version of exmy and the whole command that
/// makes them again. TestFloat's lines have no head, for TestFloat's programs read them. Flags of every style
/// are TestFloat's five, without the 20, saturated, of `exmy compute`.
#[derive(Args)]
#[command(after_long_help = crate::operations::list())]
pub(crate) struct Arguments {
    /// What is computed: f16_add, e4m3_mulAdd_to_f32, f32_to_i32, ...; `exmy verify --help` explains the
    /// names
    #[arg(required_unless_present = "tiles")]
    function: Option<TestFunction>,
    /// Tiles of a matrix unit in place of cases, in the format EXMYTILE (docs/tiles.md) with the unit's
    /// results: hopper:e4m3, blackwell:nvfp4, custom,l=8,f=24:e5m3, or a file such as unit.toml. --count is
    /// the number of tiles (64)
    #[arg(long, value_name = "UNIT",
          conflicts_with_all = ["function", "Options", "level", "exhaustive"])]
    tiles: Option<String>,
    /// Rows, columns and products of a tile [default: 8,8 and two steps of the unit]
    #[arg(long, value_name = "M,N,K", value_parser = shape)]
    shape: Option<[u32; 3]>,
    #[command(flatten)]
    options: Options,
    /// 1: few special significands and exponents; 2: walking ones and zeros, runs, more exponents
    #[arg(long, value_name = "1|2", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=2))]
    level: u8,
    /// All operands; at most 2^32 cases
    #[arg(long)]
    exhaustive: bool,
    /// Seed of the random operands
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// So many cases: a part spread over all, or more random ones
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// testfloat: lines of hexadecimal words; readmemh: one word a case for Verilog; sv: a package of
    /// SystemVerilog; c: an array; json: one object. Of tiles: bytes, or with readmemh a dot product a line
    #[arg(long, value_name = "STYLE", default_value = "testfloat")]
    style: Style,
    /// In place of the cases, how often each class of operands and results, each flag, ties and thresholds
    /// occur among them
    #[arg(long, conflicts_with = "style")]
    coverage: bool,
}

/// Cases beyond which their number is shown first: minutes, and gigabytes.
const MANY: u128 = 100_000_000;

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    if arguments.count == Some(0) {
        return Err(Error::new("--count 0 asks for nothing").hint("give at least 1"));
    }
    if let Some(unit) = &arguments.tiles {
        return tiles(unit, arguments);
    }
    if arguments.shape.is_some() {
        return Err(Error::new("--shape is about tiles").hint("name a unit with --tiles UNIT"));
    }
    let Some(function) = &arguments.function else { unreachable!("a function or --tiles") };
    let evaluator = function.evaluator(&arguments.options.settings(Profile::Ieee))?;
    let request = Request {
        level: if arguments.level == 1 { TestLevel::One } else { TestLevel::Two },
        exhaustive: arguments.exhaustive,
        seed: arguments.seed,
        count: arguments.count,
    };
    let cases = Cases::new(function, &request)?;
    remark_on_function(&evaluator);
    if cases.len() > MANY {
        say!(
            "{} cases follow; --count N takes N of them, spread over all",
            exmy_lab::amounts::thousands(u64::try_from(cases.len()).unwrap_or(u64::MAX))
        );
    }
    if arguments.coverage {
        let table = Coverage::of(&evaluator, &cases)?;
        quiet_pipe(writeln!(stdout().lock(), "{table}"))?;
        return Ok(0);
    }
    quiet_pipe(write(&evaluator, &cases, arguments.style, stdout().lock()))?;
    Ok(0)
}

/// `M,N,K`.
fn shape(text: &str) -> Result<[u32; 3], String> {
    let sides: Option<Vec<u32>> = text.split([',', 'x']).map(|side| side.parse().ok()).collect();
    let sides = sides.and_then(|sides| <[u32; 3]>::try_from(sides).ok());
    let whole = sides.filter(|sides| !sides.contains(&0));
    whole.ok_or_else(|| "three numbers from 1 on, such as 16,8,32".into())
}

/// Writes tiles of a unit.
fn tiles(unit: &str, arguments: &Arguments) -> Result<u8> {
    let unit = Unit::named(unit, None)?;
    let count = arguments.count.unwrap_or(TilesRequest::default().count.into());
    let Ok(count) = u32::try_from(count) else {
        return Err(Error::new(format!("--count {count} is more than a file of tiles holds"))
            .hint("at most 4294967295; --seed makes others"));
    };
    let bytes = match arguments.style {
        Style::Testfloat => true,
        Style::Readmemh => false,
        other => {
            return Err(Error::new(format!("tiles have no style {other}"))
                .hint("they are bytes, or with --style readmemh a dot product a line"));
        }
    };
    if bytes && stdout().is_terminal() && !arguments.coverage {
        return Err(Error::new("tiles are bytes, which a terminal does not show")
            .hint("exmy vectors --tiles UNIT > FILE, or --style readmemh"));
    }
    let request = TilesRequest { shape: arguments.shape, count, seed: arguments.seed };
    let drawn = Tiles::drawn(&unit, &request)?;
    let mut out = stdout().lock();
    if arguments.coverage {
        quiet_pipe(writeln!(out, "{}", drawn.coverage(&unit)?))?;
        return Ok(0);
    }
    if !bytes {
        let [m, n, k] = drawn.shape();
        let head = format!(
            "made by exmy {}: exmy vectors --tiles {unit} --shape {m},{n},{k} --count {count} --seed {} \
             --style readmemh",
            env!("CARGO_PKG_VERSION"),
            arguments.seed
        );
        quiet_pipe(drawn.write_readmemh(&head, out))?;
        return Ok(0);
    }
    if quiet_pipe(out.write_all(drawn.as_bytes()).and_then(|()| out.flush()))?.is_some() {
        say!("{} results of {unit}: {drawn}", drawn.results());
    }
    Ok(0)
}
