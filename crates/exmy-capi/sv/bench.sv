// A bench that holds four designs to exmy: a multiply-add of E4M3, a dot product of MXFP8, a stochastic converter, and
// a dot product of E2M1 whose sums round stochastically.
//
// +bug=1, 2, 3 or 4 switches on a bug of that design, +cases=N is the number of random cases of each (100000). It
// prints the first mismatches with the reference's view of them, then what was exercised, and ends with PASSED, or with
// FAILED and an exit status that is not 0.

module bench;
  import exmy_pkg::*;

  int bug = 0;
  int cases = 100000;
  int mismatches[1:4];

  // A random byte; often one of the codes where bugs live: zeros, subnormals, ones, largest, NaN.
  function automatic logic [7:0] interesting();
    logic [31:0] word = random_word();
    case (word[11:8])
      4'd0: return {word[7], 7'h00};
      4'd1: return {word[7], 4'h0, word[2:0]};
      4'd2: return {word[7], 7'h38};
      4'd3: return {word[7], 4'hF, word[2:0]};
      default: return word[7:0];
    endcase
  endfunction

  // Classes of operands and results, counted: of E4M3 codes, of binary32, of E5M2.
  typedef enum int {ZERO, SUBNORMAL, NORMAL, INFINITE, NAN} class_of;
  int operands[1:4][5];
  int results[1:4][5];
  int ties, saturated, inexact, exact, cancelled, overflowed, clamped, random_up, random_down, by_word[2];

  function automatic class_of of_e4m3(input logic [7:0] x);
    if (&x[6:0]) return NAN;
    if (x[6:0] == 0) return ZERO;
    return x[6:3] == 0 ? SUBNORMAL : NORMAL;
  endfunction

  function automatic class_of of_f32(input logic [31:0] x);
    if (&x[30:23]) return x[22:0] == 0 ? INFINITE : NAN;
    if (x[30:0] == 0) return ZERO;
    return x[30:23] == 0 ? SUBNORMAL : NORMAL;
  endfunction

  function automatic class_of of_e5m2(input logic [7:0] x);
    if (&x[6:2]) return x[1:0] == 0 ? INFINITE : NAN;
    if (x[6:0] == 0) return ZERO;
    return x[6:2] == 0 ? SUBNORMAL : NORMAL;
  endfunction

  task automatic report(input int which, input string text);
    mismatches[which]++;
    if (mismatches[which] <= 3) $display("mismatch: %s", text);
  endtask

  // Multiply-add.
  logic [7:0] fma_a, fma_b, fma_c, fma_d;
  logic fma_inexact;
  e4m3_mul_add fma (.bug(bug == 1), .a(fma_a), .b(fma_b), .c(fma_c), .d(fma_d), .inexact(fma_inexact));

  // It is a tie where nearest to zero and nearest away differ.
  task automatic check_fma();
    chandle even = make_function("e4m3_mulAdd", "overflow=sat-finite");
    chandle away = make_function("e4m3_mulAdd", "overflow=sat-finite,round=rna");
    chandle zero = make_function("e4m3_mulAdd", "overflow=sat-finite,round=rnz");
    byte unsigned flags, ignored;
    logic [7:0] wanted;
    for (int i = 0; i < cases; i++) begin
      fma_a = interesting();
      fma_b = interesting();
      fma_c = interesting();
      #1;
      wanted = 8'(evaluate(even, 64'(fma_a), 64'(fma_b), 64'(fma_c), 0, flags));
      operands[1][of_e4m3(fma_a)]++;
      operands[1][of_e4m3(fma_b)]++;
      operands[1][of_e4m3(fma_c)]++;
      results[1][of_e4m3(wanted)]++;
      if ((flags & EXMY_SATURATED) != 0) saturated++;
      if ((flags & EXMY_INEXACT) != 0) inexact++;
      else exact++;
      if (evaluate(away, 64'(fma_a), 64'(fma_b), 64'(fma_c), 0, ignored)
          != evaluate(zero, 64'(fma_a), 64'(fma_b), 64'(fma_c), 0, ignored)) ties++;
      if (of_e4m3(wanted) == NAN && of_e4m3(fma_d) == NAN) continue;
      if (fma_d != wanted || fma_inexact != ((flags & EXMY_INEXACT) != 0))
        report(1, $sformatf("e4m3_mulAdd %h %h %h gives %h (inexact %b), exmy %h (flags %h)",
                            fma_a, fma_b, fma_c, fma_d, fma_inexact, wanted, flags));
    end
    exmy_function_free(even);
    exmy_function_free(away);
    exmy_function_free(zero);
  endtask

  // Dot product.
  logic [31:0][7:0] dot_a, dot_b;
  logic [7:0] dot_scale_a, dot_scale_b;
  logic [31:0] dot_c, dot_d;
  mxfp8_dot dot (.bug(bug == 2), .a(dot_a), .b(dot_b), .a_scale(dot_scale_a), .b_scale(dot_scale_b),
                 .c(dot_c), .d(dot_d));

  task automatic check_dot();
    chandle unit = make_unit("custom,l=32,f=25:mxfp8-e4m3");
    longint unsigned a[32], b[32], a_scale[1], b_scale[1], result;
    logic [31:0] wanted, word;
    bit is_equal;
    for (int i = 0; i < cases / 10; i++) begin
      word = random_word();
      for (int k = 0; k < 32; k++) begin
        // NaN in one dot product of eight; pairs that cancel in some.
        dot_a[k] = interesting();
        dot_b[k] = interesting();
        if (word[2:0] != 0 && &dot_a[k][6:0]) dot_a[k] = 8'h38;
        if (word[2:0] != 0 && &dot_b[k][6:0]) dot_b[k] = 8'h38;
        if (word[4:3] == 0 && k % 2 == 1) begin
          dot_a[k] = dot_a[k - 1] ^ 8'h80;
          dot_b[k] = dot_b[k - 1];
        end
      end
      dot_scale_a = word[5] ? 8'(127 + int'(word[9:6]) - 8) : 8'(random_word());
      dot_scale_b = word[5] ? 8'(127 + int'(word[13:10]) - 8) : 8'(random_word());
      if (word[2:0] != 0 && &dot_scale_a) dot_scale_a = 8'h7F;
      if (word[2:0] != 0 && &dot_scale_b) dot_scale_b = 8'h7F;
      dot_c = random_word();
      case (word[16:14])
        3'd0: dot_c = 0;
        3'd1: dot_c = {dot_c[31], 8'd0, dot_c[22:0]};
        3'd2, 3'd3, 3'd4: dot_c = {dot_c[31], 8'(120 + int'(word[20:17])), dot_c[22:0]};
        default: ;
      endcase
      #1;
      for (int k = 0; k < 32; k++) begin
        a[k] = 64'(dot_a[k]);
        b[k] = 64'(dot_b[k]);
        operands[2][of_e4m3(dot_a[k])]++;
        operands[2][of_e4m3(dot_b[k])]++;
      end
      a_scale[0] = 64'(dot_scale_a);
      b_scale[0] = 64'(dot_scale_b);
      check(exmy_dpi_unit_dot(unit, a, b, a_scale, b_scale, 64'(dot_c), result));
      wanted = 32'(result);
      results[2][of_f32(wanted)]++;
      if (word[4:3] == 0 && wanted == dot_c) cancelled++;
      // E4M3 and its scales have no infinity.
      if (of_f32(wanted) == INFINITE && of_f32(dot_c) != INFINITE) overflowed++;
      is_equal = dot_d == wanted || (of_f32(dot_d) == NAN && of_f32(wanted) == NAN);
      if (!is_equal) begin
        report(2, $sformatf("dot product gives %h, exmy %h", dot_d, wanted));
        if (mismatches[2] == 1) $display("%s", exmy_dpi_unit_explain(unit, a, b, a_scale, b_scale, 64'(dot_c)));
      end
    end
    exmy_unit_free(unit);
  endtask

  // Converter.
  logic [31:0] convert_x;
  logic [7:0] convert_random, convert_y;
  f32_to_e4m3_stochastic convert (.bug(bug == 3), .x(convert_x), .random(convert_random), .y(convert_y));

  task automatic check_convert();
    chandle stochastic = make_function("f32_to_e4m3", "round=sr8,overflow=sat-finite");
    chandle down = make_function("f32_to_e4m3", "round=rtz,overflow=sat-finite");
    byte unsigned flags, ignored;
    logic [7:0] wanted, truncated;
    logic [31:0] word;
    for (int i = 0; i < cases; i++) begin
      word = random_word();
      convert_x = random_word();
      // Most numbers near those of E4M3.
      if (word[1:0] != 0) convert_x[30:23] = 8'(114 + int'(word[6:2]) % 24);
      if (word[12:7] == 0) convert_x[30:0] = 0;
      if (word[12:7] == 1) convert_x[30:0] = 31'h7F800000;
      convert_random = word[31:24];
      #1;
      wanted = 8'(evaluate(stochastic, 64'(convert_x), 0, 0, {convert_random, 24'd0}, flags));
      truncated = 8'(evaluate(down, 64'(convert_x), 0, 0, 0, ignored));
      operands[3][of_f32(convert_x)]++;
      results[3][of_e4m3(wanted)]++;
      if ((flags & EXMY_SATURATED) != 0) clamped++;
      if ((flags & EXMY_INEXACT) != 0 && (flags & EXMY_OVERFLOW) == 0) begin
        if (wanted == truncated) random_down++;
        else random_up++;
      end
      if (of_e4m3(wanted) == NAN && of_e4m3(convert_y) == NAN) continue;
      if (convert_y != wanted)
        report(3, $sformatf("f32_to_e4m3 %h with %h gives %h, exmy %h", convert_x, convert_random, convert_y, wanted));
    end
    exmy_function_free(stochastic);
    exmy_function_free(down);
  endtask

  // Dot product of two steps that round by random bits.
  logic [7:0][3:0] step_a, step_b;
  logic [7:0] step_c, step_d;
  logic [1:0][3:0] step_random;
  fp4_dot_stochastic steps (.bug(bug == 4), .a(step_a), .b(step_b), .c(step_c), .random(step_random), .d(step_d));

  task automatic check_steps();
    chandle unit = make_unit("custom,l=4,align=exact,out=e5m2@sr4:e2m1+e5m2");
    longint unsigned a[8], b[8], none[1], words[2], other[2], count, result;
    logic [7:0] wanted;
    logic [31:0] word;
    if (exmy_unit_words(unit, 8, count) != 0 || count != 2) $fatal(1, "two steps take %0d random words", count);
    for (int i = 0; i < cases / 10; i++) begin
      word = random_word();
      step_a = random_word();
      step_b = random_word();
      step_c = word[7:0];
      // Most addends near the products; some subnormal, infinite or NaN.
      if (word[10:8] != 0) step_c[6:2] = 5'(12 + int'(word[15:12]));
      if (word[31:27] == 0) step_c[6:2] = {5{word[11]}};
      step_random = word[23:16];
      // Little but the addend: zero and subnormal results.
      if (word[26:24] == 0) step_a &= 32'h00080000;
      #1;
      for (int k = 0; k < 8; k++) begin
        a[k] = 64'(step_a[k]);
        b[k] = 64'(step_b[k]);
      end
      for (int s = 0; s < 2; s++) words[s] = {32'd0, step_random[s], 28'd0};
      check(exmy_dpi_unit_dot_random(unit, a, b, none, none, 64'(step_c), words, result));
      wanted = 8'(result);
      operands[4][of_e5m2(step_c)]++;
      results[4][of_e5m2(wanted)]++;
      // Where the other word decides: with all bits of it turned the result is another one.
      for (int s = 0; s < 2; s++) begin
        other = words;
        other[s] ^= 64'hF0000000;
        check(exmy_dpi_unit_dot_random(unit, a, b, none, none, 64'(step_c), other, result));
        if (8'(result) != wanted) by_word[s]++;
      end
      if (of_e5m2(wanted) == NAN && of_e5m2(step_d) == NAN) continue;
      if (step_d != wanted) begin
        report(4, $sformatf("stochastic dot product by %h gives %h, exmy %h", step_random, step_d, wanted));
        if (mismatches[4] == 1)
          $display("%s", exmy_dpi_unit_explain_random(unit, a, b, none, none, 64'(step_c), words));
      end
    end
    exmy_unit_free(unit);
  endtask

  // To the right of ten columns, which simulators do not do alike.
  function automatic string cell_of(input string text);
    while (text.len() < 10) text = {" ", text};
    return text;
  endfunction

  // How often each class came; "-" where the format has none, 0 where it has and none came.
  task automatic row(input string what, input bit has_infinity, input int counts[5]);
    string cells[5];
    foreach (cells[i]) cells[i] = cell_of(i == INFINITE && !has_infinity ? "-" : $sformatf("%0d", counts[i]));
    $display("%-22s %s %s %s %s %s", what, cells[0], cells[1], cells[2], cells[3], cells[4]);
  endtask

  initial begin
    bug = plusarg("bug", 0, 4, 0, {
      "the design that has its bug: 1 (multiply-add: low bits of what is cut are forgotten), ",
      "2 (dot product: 24 bits are kept), 3 (converter: a carry is lost), ",
      "4 (stochastic dot product: one random word twice), or 0, none"});
    cases = plusarg("cases", 10, 2147483647, 100000, "how many random cases each design has, at least 10");
    $display("exmy %s", exmy_version());
    check_fma();
    check_dot();
    check_convert();
    check_steps();
    $display("%-22s %10s %10s %10s %10s %10s", "exercised", "zero", "subnormal", "normal", "infinite", "NaN");
    row("mulAdd operands", 0, operands[1]);
    row("mulAdd results", 0, results[1]);
    row("dot operands", 0, operands[2]);
    row("dot results", 1, results[2]);
    row("converter operands", 1, operands[3]);
    row("converter results", 0, results[3]);
    row("stochastic addends", 1, operands[4]);
    row("stochastic results", 1, results[4]);
    $display("mulAdd: %0d ties, %0d saturated, %0d inexact, %0d exact", ties, saturated, inexact, exact);
    $display("dot: %0d sums cancelled to the addend, %0d overflowed", cancelled, overflowed);
    $display("converter: %0d rounded up by the random bits, %0d down, %0d saturated", random_up, random_down, clamped);
    // Its products, 144 at most, are less than the last of the random bits of an addend of 57344: no sum overflows.
    $display("stochastic dot: %0d decided by the first word, %0d by the second", by_word[0], by_word[1]);
    for (int which = 1; which <= 4; which++)
      $display("design %0d: %0d mismatches", which, mismatches[which]);
    if (mismatches[1] + mismatches[2] + mismatches[3] + mismatches[4] == 0) begin
      $display("PASSED");
      $finish;
    end else begin
      $display("FAILED");
      $fatal(1, "a design differs from exmy");
    end
  end
endmodule
