/**
 * tanh as a quotient of polynomials: an LSTM asks for it twenty times a step, and the library's takes longer than all of
 * the step's multiplications. Coefficients: the float32 fit of the Eigen library, wrong by less than 1e-6.
 */
import {
  add,
  constant,
  divide,
  get,
  greatest,
  least,
  multiply,
  set,
  type Code,
} from "./simd-code.ts";

/** Beyond this, tanh is 1 for a float32. */
const LIMIT = 7.905;
/** Of x¹³, x¹¹ … x; and of x⁶, x⁴, x², 1. */
const ABOVE = [
  -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-8,
  1.48572235717979e-5, 6.37261928875436e-4, 4.89352455891786e-3,
];
const BELOW = [1.19825839466702e-6, 1.18534705686654e-4, 2.268434632439e-3, 4.89352518554385e-3];

export function rationalTanh(x: number): number {
  const inside = x > LIMIT ? LIMIT : x < -LIMIT ? -LIMIT : x;
  const square = inside * inside;
  const horner = (sum: number, coefficient: number): number => sum * square + coefficient;
  return (inside * ABOVE.reduce(horner, 0)) / BELOW.reduce(horner, 0);
}

/** The same in vectors, of the vector in a local; `square` is a local to work with. Leaves the result on the stack. */
export function tanhCode(local: number, square: number): Code {
  const horner = (coefficients: readonly number[]): Code =>
    coefficients
      .slice(1)
      .reduce<Code>(
        (sum, coefficient) => add(multiply(sum, get(square)), constant(coefficient)),
        constant(coefficients[0]!),
      );
  return [
    set(local, least(greatest(get(local), constant(-LIMIT)), constant(LIMIT))),
    set(square, multiply(get(local), get(local))),
    divide(multiply(get(local), horner(ABOVE)), horner(BELOW)),
  ];
}
