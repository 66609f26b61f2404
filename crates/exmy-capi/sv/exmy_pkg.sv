// exmy for SystemVerilog: imports by DPI-C of what a bench asks of a reference, and short forms of them.
//
// Link libexmy_capi and compile exmy_dpi.c beside it. Names, settings and flags are those of exmy.h; the repository's
// docs/c.md shows a bench. The short forms end the simulation with the library's sentence where a name is wrong.

package exmy_pkg;

  // Bits of flags.
  localparam byte unsigned EXMY_INEXACT = 1;
  localparam byte unsigned EXMY_UNDERFLOW = 2;
  localparam byte unsigned EXMY_OVERFLOW = 4;
  localparam byte unsigned EXMY_DIVIDE_BY_ZERO = 8;
  localparam byte unsigned EXMY_INVALID = 16;
  localparam byte unsigned EXMY_SATURATED = 32;

  // Every function but the first two and what frees returns 0, or what went wrong as exmy_status.
  import "DPI-C" function string exmy_message();
  import "DPI-C" function string exmy_version();

  import "DPI-C" function int exmy_function_new(
    input string name, input string settings, output chandle made);
  import "DPI-C" function void exmy_function_free(input chandle handle);
  import "DPI-C" function int exmy_evaluate(
    input chandle handle, input longint unsigned a, input longint unsigned b, input longint unsigned c,
    input int unsigned random, output longint unsigned result, output byte unsigned flags);

  // Codes of any width in arrays of longint. Scales of a unit without any are not looked at.
  import "DPI-C" function int exmy_unit_new(input string name, output chandle made);
  import "DPI-C" function void exmy_unit_free(input chandle handle);
  import "DPI-C" function int exmy_dpi_unit_dot(
    input chandle handle, input longint unsigned a[], input longint unsigned b[],
    input longint unsigned a_scales[], input longint unsigned b_scales[],
    input longint unsigned c, output longint unsigned result);
  // By random words of 32 bits, of which srN uses the top N: one for each rounding, the first step's first.
  import "DPI-C" function int exmy_unit_words(
    input chandle handle, input longint unsigned k, output longint unsigned words);
  import "DPI-C" function int exmy_dpi_unit_dot_random(
    input chandle handle, input longint unsigned a[], input longint unsigned b[],
    input longint unsigned a_scales[], input longint unsigned b_scales[],
    input longint unsigned c, input longint unsigned words[], output longint unsigned result);
  // The steps of a dot product, as text; valid until the next call.
  import "DPI-C" function string exmy_dpi_unit_explain(
    input chandle handle, input longint unsigned a[], input longint unsigned b[],
    input longint unsigned a_scales[], input longint unsigned b_scales[], input longint unsigned c);
  import "DPI-C" function string exmy_dpi_unit_explain_random(
    input chandle handle, input longint unsigned a[], input longint unsigned b[],
    input longint unsigned a_scales[], input longint unsigned b_scales[], input longint unsigned c,
    input longint unsigned words[]);

  // The function of a name under settings: make_function("e4m3_mulAdd", "overflow=sat-finite").
  function automatic chandle make_function(input string name, input string settings);
    chandle made;
    if (exmy_function_new(name, settings, made) != 0) $fatal(1, "exmy: %s", exmy_message());
    return made;
  endfunction

  // The unit of a text: make_unit("hopper:e4m3").
  function automatic chandle make_unit(input string name);
    chandle made;
    if (exmy_unit_new(name, made) != 0) $fatal(1, "exmy: %s", exmy_message());
    return made;
  endfunction

  // One result. The word of random bits counts from the top: N bits of a design stand at 32 - N.
  function automatic longint unsigned evaluate(
    input chandle handle, input longint unsigned a, input longint unsigned b, input longint unsigned c,
    input int unsigned random, output byte unsigned flags);
    longint unsigned result;
    if (exmy_evaluate(handle, a, b, c, random, result, flags) != 0) $fatal(1, "exmy: %s", exmy_message());
    return result;
  endfunction

endpackage
