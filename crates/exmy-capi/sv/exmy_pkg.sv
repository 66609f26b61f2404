// exmy for SystemVerilog: imports by DPI-C of what a bench asks of a reference, and short forms of them.
//
// Link libexmy_capi and compile exmy_dpi.c beside it. Names, settings and flags are those of exmy.h; the repository's
// docs/systemverilog.md shows a bench. The short forms end the simulation with the sentence about what is wrong.

package exmy_pkg;

  // Bits of flags.
  localparam byte unsigned EXMY_INEXACT = 1;
  localparam byte unsigned EXMY_UNDERFLOW = 2;
  localparam byte unsigned EXMY_OVERFLOW = 4;
  localparam byte unsigned EXMY_DIVIDE_BY_ZERO = 8;
  localparam byte unsigned EXMY_INVALID = 16;
  localparam byte unsigned EXMY_SATURATED = 32;

  // Every function but the first two and what frees returns 0, or what went wrong as exmy_status.
  import "DPI-C" exmy_dpi_message = function string exmy_message();
  import "DPI-C" function string exmy_version();

  import "DPI-C" function int exmy_function_new(
    input string name, input string settings, output chandle made);
  import "DPI-C" function void exmy_function_free(input chandle handle);
  import "DPI-C" function int exmy_evaluate(
    input chandle handle, input longint unsigned a, input longint unsigned b, input longint unsigned c,
    input int unsigned random, output longint unsigned result, output byte unsigned flags);

  // Codes of any width in arrays of longint, b as long as a; one with bits above its width is an error. Scales of a
  // unit without any are not looked at.
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

  // Matrices stand row by row: element (i, j) is element i * columns + j. Numbers are codes of f32. A seed and the name
  // of a stream draw the random words of stochastic modes; other modes do not look at them. Arrays of results may be
  // longer than the results, and keep the rest; where a call fails they keep everything.
  typedef enum int {EXMY_AXIS_COLS = 0, EXMY_AXIS_ROWS = 1} exmy_axis;

  // Blocks of codes that share scales. Along EXMY_AXIS_COLS they are those of a left operand, along EXMY_AXIS_ROWS
  // those of a right one.
  import "DPI-C" function int exmy_quantizer_new(input string name, output chandle made);
  import "DPI-C" function void exmy_quantizer_free(input chandle handle);
  import "DPI-C" function int exmy_dpi_quantize(
    input chandle quantizer, input longint unsigned rows, input longint unsigned cols, input int axis,
    input longint unsigned numbers[], input longint unsigned seed, input string stream, output chandle made);
  // The values alone, after a rotation still rotated.
  import "DPI-C" function int exmy_dpi_quantize_values(
    input chandle quantizer, input longint unsigned rows, input longint unsigned cols, input int axis,
    input longint unsigned numbers[], input longint unsigned seed, input string stream,
    inout longint unsigned results[]);
  // A code for each element, a scale for each block, row by row, and the code of f32 of the tensor's scale: 0 in
  // formats without one.
  import "DPI-C" function int exmy_dpi_blocks_parts(
    input chandle blocks, inout longint unsigned codes[], inout longint unsigned scales[],
    output longint unsigned tensor_scale);
  import "DPI-C" function int exmy_dpi_blocks_from_parts(
    input string format, input longint unsigned rows, input longint unsigned cols, input int axis,
    input longint unsigned codes[], input longint unsigned scales[], input longint unsigned tensor_scale,
    output chandle made);
  import "DPI-C" function int exmy_dpi_dequantize(input chandle blocks, inout longint unsigned results[]);
  import "DPI-C" function void exmy_blocks_free(input chandle handle);

  // Codes of 1 to 16 bits in bytes, and back: as many codes as their array has elements. Layouts: stream, byte,
  // fp6-padded4, fp6-padded32, tma16.
  import "DPI-C" function int exmy_packed_size(
    input string layout, input int unsigned width, input longint unsigned count, output longint unsigned size);
  import "DPI-C" function int exmy_dpi_pack(
    input string layout, input int unsigned width, input longint unsigned codes[], inout byte unsigned bytes[]);
  import "DPI-C" function int exmy_dpi_unpack(
    input string layout, input int unsigned width, input byte unsigned bytes[], inout longint unsigned codes[]);

  // A product in the order of a name. The m x n results of m x k and k x n operands are rounded to its output and are
  // codes of f32; by a name with _codes they are codes of the output's format, which may be wider.
  import "DPI-C" function int exmy_product_new(
    input string accumulation, input string settings, output chandle made);
  import "DPI-C" function void exmy_product_free(input chandle handle);
  import "DPI-C" function int exmy_dpi_gemm(
    input chandle product, input longint unsigned m, input longint unsigned n, input longint unsigned k,
    input string a_format, input longint unsigned a[], input string b_format, input longint unsigned b[],
    input longint unsigned seed, input string stream, inout longint unsigned results[]);
  import "DPI-C" function int exmy_dpi_gemm_blocks(
    input chandle product, input chandle a, input chandle b,
    input longint unsigned seed, input string stream, inout longint unsigned results[]);

  import "DPI-C" function int exmy_dpi_gemm_codes(
    input chandle product, input longint unsigned m, input longint unsigned n, input longint unsigned k,
    input string a_format, input longint unsigned a[], input string b_format, input longint unsigned b[],
    input longint unsigned seed, input string stream, inout longint unsigned results[]);
  import "DPI-C" function int exmy_dpi_gemm_blocks_codes(
    input chandle product, input chandle a, input chandle b,
    input longint unsigned seed, input string stream, inout longint unsigned results[]);

  // Ends the simulation unless a function returned 0.
  function automatic void check(input int status);
    if (status != 0) $fatal(1, "exmy: %s", exmy_message());
  endfunction

  // The function of a name under settings: make_function("e4m3_mulAdd", "overflow=sat-finite").
  function automatic chandle make_function(input string name, input string settings);
    chandle made;
    check(exmy_function_new(name, settings, made));
    return made;
  endfunction

  // The unit of a text: make_unit("hopper:e4m3").
  function automatic chandle make_unit(input string name);
    chandle made;
    check(exmy_unit_new(name, made));
    return made;
  endfunction

  // The quantizer of a text: make_quantizer("mxfp4").
  function automatic chandle make_quantizer(input string name);
    chandle made;
    check(exmy_quantizer_new(name, made));
    return made;
  endfunction

  // The product of an accumulation under settings: make_product("exact", "output=bf16").
  function automatic chandle make_product(input string accumulation, input string settings);
    chandle made;
    check(exmy_product_new(accumulation, settings, made));
    return made;
  endfunction

  // One result. The word of random bits counts from the top: N bits of a design stand at 32 - N.
  function automatic longint unsigned evaluate(
    input chandle handle, input longint unsigned a, input longint unsigned b, input longint unsigned c,
    input int unsigned random, output byte unsigned flags);
    longint unsigned result;
    check(exmy_evaluate(handle, a, b, c, random, result, flags));
    return result;
  endfunction

  // For benches: the whole number behind +NAME= on the command line, or `otherwise` where that does not stand. What is
  // no number from `least` to `most` ends the simulation with `meaning`.
  function automatic int plusarg(
    input string name, input int least, input int most, input int otherwise, input string meaning);
    string text;
    int number;
    // The option may also be a longer word that begins as this one, or have no value.
    if (!$test$plusargs(name)) return otherwise;
    if ($value$plusargs({name, "=%s"}, text) == 0) text = "";
    number = text.atoi();
    if (text != $sformatf("%0d", number) || number < least || number > most)
      $fatal(1, "+%s=%s: there is +%s=N, %s", name, text, name, meaning);
    return number;
  endfunction

  // Random words for benches, the same in every simulator (xorshift32 of Marsaglia).
  logic [31:0] random_state = 32'h2545F491;
  function automatic logic [31:0] random_word();
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
  endfunction

endpackage
