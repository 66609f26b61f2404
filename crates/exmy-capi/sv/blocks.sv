// Blocks, packing and products held to exmy: numbers worked out by hand, what goes wrong with arrays that are too
// short, and three designs, a quantizer to MXFP4, a packer of 6-bit codes and a dot product of MXFP4.
//
// +bug=1, 2 or 3 switches on a bug of that design, +cases=N is the number of random cases (10000). It prints the first
// mismatches and ends with PASSED, or with FAILED and an exit status that is not 0.

// Four numbers as a block of MXFP4: the scale has the exponent of the largest less that of E2M1's 6, and elements are
// rounded to nearest even and saturate. Numbers are finite, and none is below 2^-124. The bug: ties go away from zero.
module mxfp4_quantizer (
    input  logic             bug,
    input  logic [3:0][31:0] x,
    output logic [3:0][3:0]  codes,
    output logic [7:0]       scale
);
  logic [7:0] largest;
  int exponent, shift, code;
  logic [23:0] significand, kept, rest, half;

  always_comb begin
    largest = 0;
    for (int i = 0; i < 4; i++) if (x[i][30:23] > largest) largest = x[i][30:23];
    scale = largest - 8'd2;
    for (int i = 0; i < 4; i++) begin
      // Of the number over the scale, at most 2. Below 0 the last place stays at 2^-1.
      exponent = int'(x[i][30:23]) - int'(scale);
      significand = {x[i][30:23] != 0, x[i][22:0]};
      shift = exponent < 0 ? 22 - exponent : 22;
      kept = shift > 24 ? 0 : significand >> shift;
      rest = shift > 24 ? 0 : significand - (kept << shift);
      half = shift > 24 ? 1 : 24'd1 << (shift - 1);
      code = int'(kept) + (exponent > 0 ? 2 * exponent : 0);
      if (rest > half || (rest == half && (kept[0] || bug))) code++;
      codes[i] = {x[i][31], code > 7 ? 3'd7 : 3'(code)};
    end
  end
endmodule

// Four codes of 6 bits in three bytes, the first one in the low bits. The bug: the third byte's halves are exchanged.
module pack_6 (
    input  logic            bug,
    input  logic [3:0][5:0] codes,
    output logic [2:0][7:0] bytes
);
  assign bytes[0] = {codes[1][1:0], codes[0]};
  assign bytes[1] = {codes[2][3:0], codes[1][5:2]};
  assign bytes[2] = bug ? {codes[2][5:4], codes[3]} : {codes[3], codes[2][5:4]};
endmodule

// The dot product of two blocks of four, exact, as binary32, which holds it. The bug: the fourth product is missing
// where the sum of the others is negative.
module mxfp4_dot (
    input  logic            bug,
    input  logic [3:0][3:0] a, b,
    input  logic [7:0]      a_scale, b_scale,
    output logic [31:0]     d
);
  // Twice an element: 0 to 12.
  function automatic int twice(input logic [3:0] x);
    return x[2:1] == 0 ? int'(x[0]) : int'({1'b1, x[0]}) << (x[2:1] - 2'd1);
  endfunction

  int sum, term, top;
  logic [31:0] magnitude;

  always_comb begin
    sum = 0;
    for (int i = 0; i < 4; i++) begin
      term = twice(a[i]) * twice(b[i]);
      if (a[i][3] ^ b[i][3]) term = -term;
      if (!(bug && i == 3 && sum < 0)) sum += term;
    end
    magnitude = sum < 0 ? -sum : sum;
    top = 0;
    for (int i = 0; i < 32; i++) if (magnitude[i]) top = i;
    // In quarters; the highest bit of the significand is that of the exponent field.
    d = magnitude << (23 - top);
    d[30:23] = 8'(top - 2 + int'(a_scale) + int'(b_scale) - 127);
    d = sum == 0 ? 0 : {sum < 0, d[30:0]};
  end
endmodule

module blocks;
  import exmy_pkg::*;

  int bug = 0;
  int cases = 10000;
  int mismatches[1:3];
  int wrong, negative, zero;

  function automatic void is(input string what, input longint unsigned found, input longint unsigned wanted);
    if (found == wanted) return;
    wrong++;
    $display("%s is %h, by hand %h", what, found, wanted);
  endfunction

  // That a call failed with a sentence.
  function automatic void fails(input int status, input string sentence);
    string found = exmy_message();
    if (status != 0 && found == sentence) return;
    wrong++;
    $display("status %0d: %s, wanted: %s", status, found, sentence);
  endfunction

  // The largest of 0.1, 0.5, -3 and 1.25 is 1.5 * 2^1 and E2M1's is 1.5 * 2^2, so that the scale is 2^-1, whose code is
  // 126, and codes are those of 0.2, 1, -6 and 2.5, a tie of 2 and 3.
  task automatic blocks_by_hand();
    longint unsigned x[4] = '{'h3DCCCCCD, 'h3F000000, 64'hC0400000, 'h3FA00000};
    longint unsigned codes[4] = '{'h0, 'h2, 'hF, 'h4};
    longint unsigned values[4] = '{0, 'h3F000000, 64'hC0400000, 'h3F800000};
    longint unsigned found[4], again[4], scales[1], tensor_scale, one[1] = '{7}, peak[1] = '{'h7E};
    longint unsigned longer[5] = '{5{9}};
    chandle quantizer = make_quantizer("mxfp4"), made, plain;
    check(exmy_dpi_quantize(quantizer, 1, 4, EXMY_AXIS_COLS, x, 0, "", made));
    check(exmy_dpi_blocks_parts(made, found, scales, tensor_scale));
    foreach (codes[i]) is($sformatf("code %0d", i), found[i], codes[i]);
    is("the scale", scales[0], 126);
    is("a tensor scale that is not there", tensor_scale, 0);
    check(exmy_dpi_dequantize(made, found));
    foreach (values[i]) is($sformatf("value %0d", i), found[i], values[i]);
    check(exmy_dpi_dequantize(made, longer));
    is("what stands behind the values", longer[4], 9);
    fails(exmy_dpi_blocks_parts(made, one, scales, tensor_scale), "codes has 1 elements, and 4 are needed");
    exmy_blocks_free(made);
    check(exmy_dpi_blocks_from_parts("mxfp4", 1, 4, EXMY_AXIS_COLS, codes, scales, 0, made));
    check(exmy_dpi_dequantize(made, found));
    foreach (values[i]) is($sformatf("value %0d from parts", i), found[i], values[i]);
    fails(exmy_dpi_dequantize(made, one), "results has 1 elements, and 4 are needed");
    exmy_blocks_free(made);
    // The values without codes; and those of 0.1 and 0.5 as E4M3 (0.1015625), which has no blocks.
    check(exmy_dpi_quantize_values(quantizer, 1, 4, EXMY_AXIS_COLS, x, 0, "", longer));
    foreach (values[i]) is($sformatf("value %0d without codes", i), longer[i], values[i]);
    is("what stands behind these values", longer[4], 9);
    fails(exmy_dpi_quantize_values(quantizer, 1, 4, EXMY_AXIS_COLS, x, 0, "", one),
          "results has 1 elements, and 4 are needed");
    fails(exmy_dpi_quantize_values(quantizer, 2, 3, EXMY_AXIS_COLS, x, 0, "", longer),
          "numbers has 4 elements, and 6 are needed");
    plain = make_quantizer("e4m3");
    check(exmy_dpi_quantize_values(plain, 2, 2, EXMY_AXIS_COLS, x, 0, "", longer));
    is("0.1 as E4M3", longer[0], 'h3DD00000);
    is("0.5 as E4M3", longer[1], 'h3F000000);
    exmy_quantizer_free(plain);
    // Rows of one, that a product sums along: four blocks, each with the exponent of its number less 2.
    check(exmy_dpi_quantize(quantizer, 1, 4, EXMY_AXIS_ROWS, x, 0, "", made));
    check(exmy_dpi_blocks_parts(made, found, again, tensor_scale));
    is("the scale of 0.1 alone", again[0], 121);
    is("the scale of -3 alone", again[2], 126);
    exmy_blocks_free(made);
    fails(exmy_dpi_quantize(quantizer, 2, 3, EXMY_AXIS_COLS, x, 0, "", made),
          "numbers has 4 elements, and 6 are needed");
    fails(exmy_dpi_quantize(quantizer, 64'd1 << 33, 64'd1 << 33, EXMY_AXIS_COLS, x, 0, "", made),
          "numbers has 4 elements, and 18446744073709551615 are needed");
    check(exmy_dpi_quantize(quantizer, 0, 4, EXMY_AXIS_COLS, x, 0, "", made));
    exmy_blocks_free(made);
    exmy_quantizer_free(quantizer);
    // 6 times 448 times a scale of 1 for the whole tensor.
    check(exmy_dpi_blocks_from_parts("nvfp4", 1, 1, EXMY_AXIS_COLS, one, peak, 'h3F800000, made));
    check(exmy_dpi_dequantize(made, found));
    is("2688", found[0], 'h45280000);
    check(exmy_dpi_blocks_parts(made, found, scales, tensor_scale));
    is("the scale of 2688", scales[0], 'h7E);
    is("its tensor scale", tensor_scale, 'h3F800000);
    exmy_blocks_free(made);
    fails(exmy_dpi_blocks_from_parts("nvfp4", 1, 1, EXMY_AXIS_COLS, x, peak, 'h3F800000, made),
          "codes has 0x3dcccccd at place 0 from its left, and codes have 4 bits");
    // 0.5 and -3 stand; 1.25 goes to 1 or 1.5, each time alike.
    quantizer = make_quantizer("mxfp4@sr8");
    check(exmy_dpi_quantize(quantizer, 1, 4, EXMY_AXIS_COLS, x, 7, "doc", made));
    check(exmy_dpi_dequantize(made, found));
    exmy_blocks_free(made);
    is("0.5 by random bits", found[1], 'h3F000000);
    is("1.25 by random bits", found[3], found[3] == 'h3FC00000 ? 'h3FC00000 : 'h3F800000);
    check(exmy_dpi_quantize(quantizer, 1, 4, EXMY_AXIS_COLS, x, 7, "doc", made));
    check(exmy_dpi_dequantize(made, again));
    exmy_blocks_free(made);
    is("1.25 by the same random bits", again[3], found[3]);
    exmy_quantizer_free(quantizer);
  endtask

  task automatic packing_by_hand();
    longint unsigned codes[4] = '{'h0, 'h2, 'hD, 'h7}, nine[2] = '{'h02A, 'h1FF}, back[4], count;
    byte unsigned bytes[2], padded[4];
    int status;
    string text;
    check(exmy_packed_size("stream", 6, 33, count));
    is("the bytes of 198 bits", count, 25);
    check(exmy_dpi_pack("stream", 4, codes, bytes));
    is("byte 0", 64'(bytes[0]), 'h20);
    is("byte 1", 64'(bytes[1]), 'h7D);
    check(exmy_dpi_unpack("stream", 4, bytes, back));
    foreach (codes[i]) is($sformatf("code %0d again", i), back[i], codes[i]);
    check(exmy_dpi_pack("byte", 9, nine, padded));
    is("four bytes", {32'd0, padded[3], padded[2], padded[1], padded[0]}, 'h01FF002A);
    fails(exmy_dpi_pack("byte", 4, codes, bytes), "bytes has 2 elements, and 4 are needed");
    fails(exmy_dpi_pack("stream", 8, nine, bytes), "codes has 0x1ff at place 1 from its left, and codes have 8 bits");
    fails(exmy_dpi_unpack("byte", 4, bytes, back), "bytes has 2 elements, and 4 are needed");
    // The library's own sentence, behind one about an array.
    status = exmy_dpi_pack("streams", 4, codes, bytes);
    text = exmy_message();
    if (status == 0 || text.substr(0, 8) != "no layout") fails(0, "no layout of this name");
  endtask

  // The last place of 1 is 2^-23. Half of it is lost when it is added to 1, and twice half of it is not.
  task automatic products_by_hand();
    longint unsigned a[6] = '{'h3F800000, 'h33800000, 'h33800000, 'h33800000, 'h33800000, 'h3F800000};
    longint unsigned b[3] = '{'h3F800000, 'h3F800000, 'h3F800000};
    longint unsigned left[2] = '{'h3C, 'hC0}, right[2] = '{'h38, 'h44}, d[2], behind = 64'h3F800001;
    longint unsigned seven[1] = '{7}, half[1] = '{126}, none[1] = '{0}, ones[256] = '{256{'h38}}, dot;
    string text;
    chandle product = make_product("fma", ""), blocks, down, unit;
    check(exmy_dpi_gemm(product, 2, 1, 3, "f32", a, "f32", b, 0, "", d));
    is("1 + 2^-24 + 2^-24, one after the other", d[0], 'h3F800000);
    is("2^-24 + 2^-24 + 1, one after the other", d[1], 'h3F800001);
    fails(exmy_dpi_gemm(product, 3, 1, 3, "f32", a, "f32", b, 0, "", d), "a has 6 elements, and 9 are needed");
    fails(exmy_dpi_gemm(product, 1, 3, 1, "f32", a, "f32", b, 0, "", d), "results has 2 elements, and 3 are needed");
    exmy_product_free(product);
    product = make_product("exact", "");
    check(exmy_dpi_gemm(product, 2, 1, 3, "f32", a, "f32", b, 0, "", d));
    is("1 + 2^-24 + 2^-24, exact", d[0], 'h3F800001);
    exmy_product_free(product);
    // 1.5 * 0.5 - 2 * 4 is -7.25, and E5M2 has 7 and 8.
    product = make_product("exact", "output=e5m2");
    check(exmy_dpi_gemm(product, 1, 1, 2, "e4m3", left, "e5m2", right, 0, "", d));
    is("-7.25 as E5M2", d[0], 64'hC0E00000);
    check(exmy_dpi_gemm_codes(product, 1, 1, 2, "e4m3", left, "e5m2", right, 0, "", d));
    is("its code", d[0], 'hC7);
    is("what stands behind it", d[1], behind);
    fails(exmy_dpi_gemm_codes(product, 3, 1, 1, "e4m3", left, "e5m2", right, 0, "", d),
          "a has 2 elements, and 3 are needed");
    exmy_product_free(product);
    // Dot products take codes that fit, as many of a as of b.
    unit = make_unit("custom:e4m3");
    check(exmy_dpi_unit_dot(unit, left, left, none, none, 0, dot));
    is("1.5 * 1.5 + 2 * 2", dot, 'h40C80000);
    fails(exmy_dpi_unit_dot(unit, left, a, none, none, 0, dot), "b has 6 elements, and a has 2");
    fails(exmy_dpi_unit_dot(unit, a, a, none, none, 0, dot),
          "a has 0x3f800000 at place 0 from its left, and codes have 8 bits");
    exmy_unit_free(unit);
    // An explanation is as long as its sum: a line a product at least.
    unit = make_unit("hopper:e4m3");
    text = exmy_dpi_unit_explain(unit, left, left, none, none, 0);
    is("an explanation of two products", 64'(text.len() > 100), 1);
    text = exmy_dpi_unit_explain(unit, ones, ones, none, none, 0);
    is("one of 256", 64'(text.len() > 16384), 1);
    exmy_unit_free(unit);
    // The exact sum of 1 and 2^-24 twice, in a format that has it, and of blocks: 6 * 6 * 2^-2.
    product = make_product("exact", "output=f64");
    check(exmy_dpi_gemm_codes(product, 2, 1, 3, "f32", a, "f32", b, 0, "", d));
    is("1 + 2^-23 as a code of f64", d[0], 64'h3FF0000020000000);
    check(exmy_dpi_blocks_from_parts("mxfp4", 1, 1, EXMY_AXIS_COLS, seven, half, 0, blocks));
    check(exmy_dpi_blocks_from_parts("mxfp4", 1, 1, EXMY_AXIS_ROWS, seven, half, 0, down));
    check(exmy_dpi_gemm_blocks_codes(product, blocks, down, 0, "", d));
    is("9 as a code of f64", d[0], 64'h4022000000000000);
    exmy_blocks_free(blocks);
    exmy_blocks_free(down);
    exmy_product_free(product);
  endtask

  // The rows of A, and the columns of B, of 2 x 4 and 4 x 2 numbers.
  logic [3:0][31:0] row[2], column[2];
  logic [3:0][3:0] row_codes[2], column_codes[2];
  logic [7:0] row_scale[2], column_scale[2];
  logic [31:0] d[4];
  for (genvar i = 0; i < 2; i++) begin : quantizers
    mxfp4_quantizer a (.bug(bug == 1), .x(row[i]), .codes(row_codes[i]), .scale(row_scale[i]));
    mxfp4_quantizer b (.bug(bug == 1), .x(column[i]), .codes(column_codes[i]), .scale(column_scale[i]));
  end
  for (genvar i = 0; i < 4; i++) begin : dots
    mxfp4_dot dot (.bug(bug == 3), .a(row_codes[i / 2]), .b(column_codes[i % 2]), .a_scale(row_scale[i / 2]),
                   .b_scale(column_scale[i % 2]), .d(d[i]));
  end
  logic [3:0][5:0] six;
  logic [2:0][7:0] six_bytes;
  pack_6 packer (.bug(bug == 2), .codes(six), .bytes(six_bytes));

  task automatic mismatch(input int which, input string text);
    mismatches[which]++;
    if (mismatches[which] <= 3) $display("mismatch: %s", text);
  endtask

  // A number near 1; some with few bits, which are ties, some zeros, with a sign.
  function automatic logic [31:0] number();
    logic [31:0] word = random_word();
    case (word[2:0])
      3'd0: return {word[31], 31'd0};
      3'd1: return {word[31], 8'd120 + word[11:4] % 8'd12, word[22:0]};
      default: return {word[31], 8'd124 + word[11:4] % 8'd5, word[22:20], 20'd0};
    endcase
  endfunction

  task automatic check_designs();
    longint unsigned a[8], b[8], codes[8], scales[2], results[4], tensor_scale, wide[4];
    byte unsigned bytes[3];
    chandle quantizer = make_quantizer("mxfp4"), product = make_product("exact", ""), left, right;
    for (int n = 0; n < cases; n++) begin
      for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++) begin
          row[i][k] = number();
          column[i][k] = number();
        end
      // No block of zeros.
      for (int i = 0; i < 2; i++) begin
        row[i][0][23] = 1;
        column[i][3][23] = 1;
        for (int k = 0; k < 4; k++) if (row[i][k][30:23] == 1) row[i][k] = 32'h3F800000;
        for (int k = 0; k < 4; k++) if (column[i][k][30:23] == 1) column[i][k] = 32'hBF800000;
      end
      six = 24'(random_word());
      #1;
      for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++) begin
          a[4 * i + k] = 64'(row[i][k]);
          b[2 * k + i] = 64'(column[i][k]);
        end
      check(exmy_dpi_quantize(quantizer, 2, 4, EXMY_AXIS_COLS, a, 0, "", left));
      check(exmy_dpi_quantize(quantizer, 4, 2, EXMY_AXIS_ROWS, b, 0, "", right));
      check(exmy_dpi_blocks_parts(left, codes, scales, tensor_scale));
      for (int i = 0; i < 8; i++)
        if (64'(row_codes[i / 4][i % 4]) != codes[i] || 64'(row_scale[i / 4]) != scales[i / 4])
          mismatch(1, $sformatf("%h as code %h under %h, exmy %h under %h", a[i], row_codes[i / 4][i % 4],
                                row_scale[i / 4], codes[i], scales[i / 4]));
      check(exmy_dpi_blocks_parts(right, codes, scales, tensor_scale));
      for (int i = 0; i < 8; i++)
        if (64'(column_codes[i % 2][i / 2]) != codes[i] || 64'(column_scale[i % 2]) != scales[i % 2])
          mismatch(1, $sformatf("%h as code %h under %h, exmy %h under %h", b[i], column_codes[i % 2][i / 2],
                                column_scale[i % 2], codes[i], scales[i % 2]));
      // Of the design's own blocks, so that a bug of the quantizer shows in the quantizer alone.
      exmy_blocks_free(left);
      exmy_blocks_free(right);
      for (int i = 0; i < 8; i++) codes[i] = 64'(row_codes[i / 4][i % 4]);
      for (int i = 0; i < 2; i++) scales[i] = 64'(row_scale[i]);
      check(exmy_dpi_blocks_from_parts("mxfp4", 2, 4, EXMY_AXIS_COLS, codes, scales, 0, left));
      for (int i = 0; i < 8; i++) codes[i] = 64'(column_codes[i % 2][i / 2]);
      for (int i = 0; i < 2; i++) scales[i] = 64'(column_scale[i]);
      check(exmy_dpi_blocks_from_parts("mxfp4", 4, 2, EXMY_AXIS_ROWS, codes, scales, 0, right));
      check(exmy_dpi_gemm_blocks(product, left, right, 0, "", results));
      for (int i = 0; i < 4; i++) begin
        if (results[i][31]) negative++;
        if (results[i] == 0) zero++;
        if (64'(d[i]) != results[i])
          mismatch(3, $sformatf("dot product %0d is %h, exmy %h", i, d[i], results[i]));
      end
      exmy_blocks_free(left);
      exmy_blocks_free(right);
      foreach (wide[i]) wide[i] = 64'(six[i]);
      check(exmy_dpi_pack("stream", 6, wide, bytes));
      for (int i = 0; i < 3; i++)
        if (six_bytes[i] != bytes[i])
          mismatch(2, $sformatf("byte %0d of %h is %h, exmy %h", i, six, six_bytes[i], bytes[i]));
    end
    exmy_quantizer_free(quantizer);
    exmy_product_free(product);
  endtask

  initial begin
    bug = plusarg("bug", 0, 3, 0, {
      "the design that has its bug: 1 (quantizer: ties go away from zero), ",
      "2 (packer: halves of a byte exchanged), 3 (dot product: a product is missing), or 0, none"});
    cases = plusarg("cases", 1, 2147483647, 10000, "how many random cases there are, at least 1");
    blocks_by_hand();
    packing_by_hand();
    products_by_hand();
    check_designs();
    $display("by hand: %0d wrong", wrong);
    $display("products: %0d negative, %0d zero", negative, zero);
    for (int which = 1; which <= 3; which++)
      $display("design %0d: %0d mismatches", which, mismatches[which]);
    if (wrong + mismatches[1] + mismatches[2] + mismatches[3] == 0) begin
      $display("PASSED");
      $finish;
    end else begin
      $display("FAILED");
      $fatal(1, "a design or a number worked out by hand differs from exmy");
    end
  end
endmodule
