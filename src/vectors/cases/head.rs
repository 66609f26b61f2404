//! What a file of cases says of itself: the version and the command that make it again, and what its
//! fields are.

use std::io::{self, Write};

use super::style::{Field, Style};
use super::{Cases, TestLevel};
use crate::math::IntInvalid;
use crate::vectors::evaluate::Evaluator;
use crate::vectors::function::TestFunction;

/// The version of this crate.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn int_invalid(evaluator: &Evaluator) -> &'static str {
    match evaluator.settings().int_invalid {
        IntInvalid::X86 => "x86",
        IntInvalid::Riscv => "riscv",
        IntInvalid::Arm => "arm",
    }
}

fn level(cases: &Cases) -> u8 {
    match cases.request().level {
        TestLevel::One => 1,
        TestLevel::Two => 2,
    }
}

/// The command that makes the same bytes. It says what it could leave out, too, so that it means
/// the same whatever is usual.
fn command(evaluator: &Evaluator, cases: &Cases, style: Style) -> String {
    let (rules, request) = (&evaluator.context().rules, cases.request());
    let mut text = format!(
        "exmy vectors {} --profile {} --round {} --overflow {} --tininess {} --{} --int-invalid {} \
         --level {} --seed {}",
        evaluator.function(),
        evaluator.settings().profile,
        rules.rounding,
        rules.overflow,
        rules.tininess,
        if evaluator.is_exact() { "exact" } else { "notexact" },
        int_invalid(evaluator),
        level(cases),
        request.seed,
    );
    if let Some(flush) = evaluator.settings().flush {
        text += &format!(" --flush {flush}");
    }
    if let Some(operands) = evaluator.settings().operands {
        text += &format!(" --subnormals {operands}");
    }
    if request.exhaustive {
        text += " --exhaustive";
    }
    if let Some(count) = request.count {
        text += &format!(" --count {count}");
    }
    text + &format!(" --style {style}")
}

/// A function's name as one of C and of SystemVerilog.
fn identifier(function: &TestFunction) -> String {
    let part = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    function.to_string().chars().map(part).collect()
}

/// What stands before the cases.
pub(super) fn head(
    out: &mut Vec<u8>,
    evaluator: &Evaluator,
    cases: &Cases,
    fields: &[Field],
    style: Style,
) -> io::Result<()> {
    let function = evaluator.function();
    let count = cases.len();
    let command = command(evaluator, cases, style);
    match style {
        Style::Testfloat => {}
        Style::Readmemh => {
            writeln!(out, "// exmy vectors {function}: {count} cases")?;
            writeln!(out, "// made by exmy {VERSION}: {command}")?;
            let mut high: usize = fields.iter().map(|field| 4 * field.digits()).sum();
            writeln!(out, "// words of {high} bits:")?;
            for field in fields {
                let low = high - 4 * field.digits();
                writeln!(out, "//   [{}:{low}] {}: {}", high - 1, field.name, field.what)?;
                high = low;
            }
        }
        Style::Sv => {
            writeln!(out, "// exmy vectors {function}: {count} cases")?;
            writeln!(out, "// made by exmy {VERSION}: {command}")?;
            writeln!(out, "package cases_{};", identifier(function))?;
            writeln!(out, "  localparam int COUNT = {count};")?;
            for Field { name, bits, .. } in fields {
                writeln!(out, "  localparam int {}_BITS = {bits};", name.to_uppercase())?;
            }
            writeln!(out, "  typedef struct packed {{")?;
            for Field { name, bits, what } in fields {
                writeln!(out, "    logic [{}:0] {name}; // {what}", bits - 1)?;
            }
            writeln!(out, "  }} case_t;\n  localparam case_t CASES[COUNT] = '{{")?;
        }
        Style::C => {
            let name = identifier(function);
            writeln!(out, "/* exmy vectors {function}: {count} cases")?;
            writeln!(out, "   made by exmy {VERSION}: {command} */")?;
            writeln!(out, "#include <stdint.h>\n\nstruct case_{name} {{")?;
            for field in fields {
                // Words beyond 64 bits: the low half first.
                let halves = if field.bits > 64 { "[2]" } else { "" };
                let (kind, name, what) = (field.c_type(), field.name, &field.what);
                writeln!(out, "    {kind} {name}{halves}; /* {what} */")?;
            }
            writeln!(out, "}};\n\nstatic const struct case_{name} cases_{name}[] = {{")?;
        }
        Style::Json => {
            let (rules, request) = (&evaluator.context().rules, cases.request());
            let names: Vec<_> = fields.iter().map(|field| format!("{:?}", field.name)).collect();
            let kinds: Vec<_> = function.operands().iter().map(|k| format!("\"{k}\"")).collect();
            writeln!(
                out,
                "{{\"version\":\"{VERSION}\",\"command\":\"{command}\",\
                 \"function\":\"{function}\",\"operands\":[{}],\"result\":\"{}\",\
                 \"profile\":\"{}\",\"round\":\"{}\",\"overflow\":\"{}\",\
                 \"tininess\":\"{}\",\"exact\":{},\"int_invalid\":\"{}\",\
                 \"level\":{},\"exhaustive\":{},\"seed\":\"{}\",\"count\":{count},\
                 \"fields\":[{}],\"cases\":[",
                kinds.join(","),
                function.result(),
                evaluator.settings().profile,
                rules.rounding,
                rules.overflow,
                rules.tininess,
                evaluator.is_exact(),
                int_invalid(evaluator),
                level(cases),
                request.exhaustive,
                request.seed,
                names.join(","),
            )?;
        }
    }
    Ok(())
}
