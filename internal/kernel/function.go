package kernel

// Function is a function of one number. It is computed in float64, and for Float32 rounded once more. It has the same
// bits on every machine.
//
// The last two columns are the largest errors in units in the last place. Those of Float32 are of all its numbers.
// Those of Float64 are the largest that TestFunctionErrors has found among 20,000 random numbers.
//
//	                             limits                          Float32      Float64
//	Exp         e^x              0, infinity                     0.5000001    1.1
//	NaturalLog  Log              -infinity of 0, NaN below       0.5000001    2
//	Tanh                         -1, 1; -0 of -0                 0.5000001    3
//	Sigmoid     1 / (1 + e^-x)   0, 1                            0.5000001    3
//	Gelu        x Φ(x)           -0, infinity                    0.5000001    6
//	Softplus    log(1 + e^x)     0, infinity                     0.5000001    3
//
// Φ is the distribution function of the normal distribution. A NaN gives the canonical one. Softplus has no loop in
// assembly.
type Function uint8

// The functions.
const (
	Exp Function = iota
	NaturalLog
	Tanh
	Sigmoid
	Gelu
	Softplus

	functionEnd // one past the last
)

// formulas are the functions.
var formulas = [functionEnd]func(float64) float64{
	Exp:        func(x float64) float64 { return exp(x, 0) },
	NaturalLog: Log,
	Tanh:       tanh,
	Sigmoid:    sigmoid,
	Gelu:       gelu,
	Softplus:   softplus,
}

// Loop returns the loop dst[i] = f(src[i]), or nil if t is neither Float32 nor Float64. dst is src, or does not overlap
// it.
func (f Function) Loop(t Type) func(dst, src []byte) {
	if f >= functionEnd {
		return nil
	}
	return at(&chosen.function[f], t)
}

// GeluSlope returns the loop dst[i] = g[i] (Φ(x[i]) + x[i] φ(x[i])), or nil if t is neither Float32 nor Float64. It is
// g times the derivative of Gelu, φ being the density of the normal distribution, computed in float64. dst may be x or
// g.
func GeluSlope(t Type) func(dst, x, g []byte) { return at(&chosen.geluSlope, t) }

// functions fills in the functions in plain Go.
func functions[T float32 | float64](v *version, t Type) {
	for f, formula := range formulas {
		v.function[f][t] = unaryLoop(func(dst, src []T) {
			src = src[:len(dst)]
			for i, x := range src {
				dst[i] = T(canonical(formula(float64(x))))
			}
		})
	}
	v.geluSlope[t] = binaryLoop(func(dst, x, g []T) {
		x, g = x[:len(dst)], g[:len(dst)]
		for i := range dst {
			dst[i] = T(canonical(float64(geluSlope(float64(x[i])) * float64(g[i]))))
		}
	})
}
