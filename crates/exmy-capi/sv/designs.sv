// Four small designs for bench.sv, each with a bug that a wire switches on: what verification is to find.

// E4M3 (OCP: bias 7, no infinity, NaN is 7F) multiply-add, a * b + c rounded once to nearest even, saturating.
// The bug: of what is cut, bits beyond the third below the last place are forgotten.
module e4m3_mul_add (
    input  logic       bug,
    input  logic [7:0] a, b, c,
    output logic [7:0] d,
    output logic       inexact
);
  // A number is an integer of 18 bits times 2^-9: the subnormal numbers' last place.
  function automatic logic [17:0] integer_of(input logic [7:0] x);
    if (x[6:3] == 0) return 18'(x[2:0]);
    return 18'({1'b1, x[2:0]}) << (x[6:3] - 4'd1);
  endfunction

  logic nan, negative, product_negative;
  logic [35:0] product, addend, magnitude;
  logic [36:0] sum;
  int top, cut;
  logic [35:0] kept, rest, half;
  logic [4:0] field;

  always_comb begin
    nan = &a[6:0] || &b[6:0] || &c[6:0];
    product_negative = a[7] ^ b[7];
    product = 36'(integer_of(a)) * 36'(integer_of(b)); // times 2^-18
    addend = 36'(integer_of(c)) << 9;
    if (product_negative == c[7]) begin
      sum = 37'(product) + 37'(addend);
      negative = c[7];
    end else if (product > addend) begin
      sum = 37'(product - addend);
      negative = product_negative;
    end else begin
      sum = 37'(addend - product);
      negative = c[7] && addend != product;
    end
    magnitude = sum[35:0]; // at most 448 * 448 + 448
    // The place of the first bit decides where the last one is: three below, at least 2^-9, which is place 9.
    top = 0;
    for (int i = 0; i < 36; i++) if (magnitude[i]) top = i;
    cut = top < 12 ? 9 : top - 3;
    kept = magnitude >> cut;
    rest = magnitude & ((36'd1 << cut) - 36'd1);
    inexact = rest != 0 && !nan;
    if (bug) rest = (rest >> (cut - 3)) << (cut - 3);
    half = 36'd1 << (cut - 1);
    if (rest > half || (rest == half && kept[0])) kept = kept + 36'd1;
    // kept has 4 bits, or 5 where it was rounded up to the next power of two; fields add up by themselves.
    field = 5'(cut - 9);
    if (nan) d = 8'h7F;
    else if (cut > 23 || (36'(field) * 36'd8 + kept) > 36'd126) begin
      d = {negative, 7'h7E};
      inexact = 1'b1;
    end else d = {negative, 7'(36'(field) * 36'd8 + kept)};
  end
endmodule

// A dot product of 32 elements of MXFP8 (E4M3 with an E8M0 scale) on top of a binary32 number: products are aligned to
// the largest exponent, cut 25 bits below it, added exactly and rounded toward zero. exmy calls it
// custom,l=32,f=25:mxfp8-e4m3. The bug: 24 bits are kept.
module mxfp8_dot (
    input  logic        bug,
    input  logic [31:0][7:0] a, b,
    input  logic [7:0]  a_scale, b_scale,
    input  logic [31:0] c,
    output logic [31:0] d
);
  localparam int FLOOR = -133;

  function automatic int exponent_of(input logic [7:0] x);
    return x[6:3] == 0 ? -6 : int'(x[6:3]) - 7;
  endfunction

  function automatic logic [3:0] significand_of(input logic [7:0] x);
    return {x[6:3] != 0, x[2:0]};
  endfunction

  logic nan;
  int scale, largest, e, top, last;
  logic [63:0] term;
  logic signed [63:0] sum;
  logic [63:0] magnitude, kept;

  always_comb begin
    scale = int'(a_scale) + int'(b_scale) - 254;
    nan = &a_scale || &b_scale || (&c[30:23] && c[22:0] != 0);
    largest = FLOOR;
    for (int i = 0; i < 32; i++) begin
      nan |= &a[i][6:0] || &b[i][6:0];
      e = exponent_of(a[i]) + exponent_of(b[i]) + scale;
      if (a[i][6:0] != 0 && b[i][6:0] != 0 && e > largest) largest = e;
    end
    e = c[30:23] == 0 ? -126 : int'(c[30:23]) - 127;
    if (c[30:0] != 0 && e > largest) largest = e;
    // In units of 2^(largest - 25).
    term = 64'({c[30:23] != 0, c[22:0]}) << 2;
    term = largest - e > 63 ? 0 : term >> (largest - e);
    if (bug) term[0] = 0;
    sum = c[31] ? -$signed(term) : $signed(term);
    for (int i = 0; i < 32; i++) begin
      e = exponent_of(a[i]) + exponent_of(b[i]) + scale;
      term = 64'(8'(significand_of(a[i])) * 8'(significand_of(b[i]))) << 19;
      term = largest - e > 63 ? 0 : term >> (largest - e);
      if (bug) term[0] = 0;
      sum += a[i][7] ^ b[i][7] ? -$signed(term) : $signed(term);
    end
    magnitude = sum < 0 ? -sum : sum;
    top = 0;
    for (int i = 0; i < 64; i++) if (magnitude[i]) top = i;
    // The exponent of the first bit, and how many places lie below the last of 24, or of a subnormal number.
    e = largest - 25 + top;
    last = e < -126 ? -149 - (largest - 25) : top - 23;
    kept = last > 63 ? 0 : last > 0 ? magnitude >> last : magnitude << -last;
    if (nan) d = 32'h7FFFFFFF;
    else if (&c[30:23]) d = c;
    else if (kept == 0) d = 0;
    else if (e > 127) d = {sum < 0, 31'h7F800000};
    else if (e < -126) d = {sum < 0, 31'(kept)};
    else d = {sum < 0, 8'(e + 127), kept[22:0]};
  end
endmodule

// binary32 to E4M3 by eight random bits: they are added below the last place, and the rest is cut. Saturating.
// The bug: the carry of the random bits is lost where all bits of the mantissa are ones.
module f32_to_e4m3_stochastic (
    input  logic        bug,
    input  logic [31:0] x,
    input  logic [7:0]  random,
    output logic [7:0]  y
);
  logic [31:0] significand, wide;
  int e, shift;
  logic [31:0] kept;

  always_comb begin
    // Eight bits below the last place of E4M3, which is 2^(e - 3), at least 2^-9.
    e = int'(x[30:23]) - 127;
    significand = {8'd0, x[30:23] != 0, x[22:0]};
    shift = e < -6 ? 12 + (-6 - e) : 12;
    wide = shift > 31 ? 0 : significand >> shift;
    kept = (wide + 32'(random)) >> 8;
    if (bug && wide[10:8] == 3'd7) kept = wide >> 8;
    if (&x[30:23] && x[22:0] != 0) y = 8'h7F;
    else if (e > 8 || (e > -7 && 32'(e + 6) * 32'd8 + kept > 32'd126)) y = {x[31], 7'h7E};
    else if (e < -6) y = {x[31], 7'(kept)};
    else y = {x[31], 7'(32'(e + 6) * 32'd8 + kept)};
  end
endmodule

// A dot product of 8 elements of E2M1 on top of an E5M2 number, in two steps of 4. The sum of a step is exact and is
// rounded to E5M2 by four random bits, which are added below the last place before the rest is cut; step s takes
// random[s]. exmy calls it custom,l=4,align=exact,out=e5m2@sr4:e2m1+e5m2. The bug: both steps take random[0].
module fp4_dot_stochastic (
    input  logic            bug,
    input  logic [7:0][3:0] a, b,
    input  logic [7:0]      c,
    input  logic [1:0][3:0] random,
    output logic [7:0]      d
);
  // Twice an element: 0 to 12.
  function automatic logic [3:0] twice(input logic [3:0] x);
    return x[2:1] == 0 ? 4'(x[0]) : 4'({1'b1, x[0]}) << (x[2:1] - 2'd1);
  endfunction

  logic signed [63:0] sum, term;
  logic [63:0] magnitude, code;
  int top, cut;

  always_comb begin
    d = c;
    for (int s = 0; s < 2; s++) begin
      // In units of 2^-16, the last place of the subnormal numbers; products are multiples of 2^-2.
      sum = d[6:2] == 0 ? 64'(d[1:0]) : 64'({1'b1, d[1:0]}) << (d[6:2] - 5'd1);
      if (d[7]) sum = -sum;
      for (int i = 4 * s; i < 4 * s + 4; i++) begin
        term = (64'(twice(a[i])) * 64'(twice(b[i]))) << 14;
        sum += a[i][3] ^ b[i][3] ? -term : term;
      end
      magnitude = sum < 0 ? -sum : sum;
      top = 0;
      for (int i = 0; i < 64; i++) if (magnitude[i]) top = i;
      cut = top < 2 ? 0 : top - 2;
      // Three bits are kept; fields add up by themselves. At most 57344 + 144 is cut to 57344, the largest number.
      code = (((magnitude << 4) >> cut) + 64'(random[bug ? 0 : s])) >> 4;
      code += 64'(cut) << 2;
      if (d[6:2] == 5'h1F) d = d[1:0] == 0 ? d : 8'h7F;
      else d = {sum < 0, 7'(code)};
    end
  end
endmodule
