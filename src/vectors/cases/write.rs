//! Cases evaluated and written down, one after the other.

use std::io::{self, Write};

use super::Cases;
use super::head::head;
use super::style::{Field, Style};
use crate::random::Philox;
use crate::vectors::convert::STREAM;
use crate::vectors::evaluate::{Evaluator, Outcome};
use crate::vectors::function::Kind;
use crate::vectors::lines::write_hexadecimal;

fn fields(evaluator: &Evaluator) -> Vec<Field> {
    let function = evaluator.function();
    let field = |name, kind: &Kind| Field { name, bits: kind.bits(), what: kind.to_string() };
    let mut fields: Vec<_> =
        ["a", "b", "c"].into_iter().zip(function.operands()).map(|(n, k)| field(n, k)).collect();
    if evaluator.random_bits() > 0 {
        let bits = evaluator.random_bits();
        fields.push(Field { name: "random", bits, what: "random integer".into() });
    }
    fields.push(field("result", &function.result()));
    // No "saturated", so that cases of every style agree with TestFloat's lines.
    let what = "01 inexact, 02 underflow, 04 overflow, 08 infinite, 10 invalid; \
                as TestFloat's, no saturated";
    fields.push(Field { name: "flags", bits: 8, what: what.into() });
    fields
}

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 16;

/// Evaluates all cases and writes them. The random integers of a stochastic mode are the top bits
/// of the words of [`STREAM`] under the seed of the cases, case by case.
///
/// All styles but TestFloat's, whose lines other programs read, begin with the version of this crate
/// and the command that makes the same bytes again.
///
/// # Errors
/// Those of writing; and an elementary function that cannot be decided.
pub fn write(
    evaluator: &Evaluator,
    cases: &Cases,
    style: Style,
    mut sink: impl Write,
) -> io::Result<()> {
    let fields = fields(evaluator);
    let philox = Philox::new(cases.request().seed, STREAM);
    let random_bits = evaluator.random_bits();
    let mut out = Vec::with_capacity(2 * BUFFER);
    head(&mut out, evaluator, cases, &fields, style)?;
    let operands = evaluator.function().operands().len();
    let mut words = [0; 6];
    let mut index = 0;
    while index < cases.len() {
        let case = cases.operands(index);
        words[..operands].copy_from_slice(&case[..operands]);
        let mut next = operands;
        let mut random = 0;
        if random_bits > 0 {
            random = philox.word(index as u64);
            words[next] = u128::from(random >> (32 - random_bits));
            next += 1;
        }
        let Outcome { word, flags } = evaluator.evaluate(case, random).map_err(io::Error::other)?;
        words[next] = word;
        words[next + 1] = flags.ieee().bits().into();
        line(&mut out, &words[..next + 2], &fields, style, index + 1 == cases.len());
        if out.len() >= BUFFER {
            sink.write_all(&out)?;
            out.clear();
        }
        index += 1;
    }
    match style {
        Style::C => out.extend(b"};\n"),
        Style::Sv => out.extend(b"  };\nendpackage\n"),
        Style::Json => out.extend(b"]}\n"),
        Style::Testfloat | Style::Readmemh => {}
    }
    sink.write_all(&out)?;
    sink.flush()
}

fn line(out: &mut Vec<u8>, words: &[u128], fields: &[Field], style: Style, last: bool) {
    let (open, between, close): (&[u8], &[u8], &[u8]) = match style {
        Style::Testfloat => (b"", b" ", b"\n"),
        Style::Readmemh => (b"", b"_", b"\n"),
        Style::C => (b"    { ", b", ", b" },\n"),
        Style::Sv if last => (b"    '{", b", ", b"}\n"),
        Style::Sv => (b"    '{", b", ", b"},\n"),
        Style::Json if last => (b"[\"", b"\",\"", b"\"]\n"),
        Style::Json => (b"[\"", b"\",\"", b"\"],\n"),
    };
    out.extend(open);
    for (i, (word, field)) in words.iter().zip(fields).enumerate() {
        if i > 0 {
            out.extend(between);
        }
        match (style, field.bits) {
            (Style::C, 65..) => {
                out.extend(b"{ 0x");
                write_hexadecimal(out, *word, 16, false);
                out.extend(b"u, 0x");
                write_hexadecimal(out, word >> 64, field.digits() - 16, false);
                out.extend(b"u }");
            }
            (Style::C, bits) => {
                out.extend(b"0x");
                write_hexadecimal(out, *word, field.digits(), false);
                out.extend(if bits > 32 { &b"u"[..] } else { b"" });
            }
            (Style::Sv, bits) => {
                out.extend(format!("{bits}'h").bytes());
                write_hexadecimal(out, *word, field.digits(), false);
            }
            _ => write_hexadecimal(out, *word, field.digits(), style == Style::Testfloat),
        }
    }
    out.extend(close);
}
