// The cells of recurrent layers, one step a launch, and their gradients. Products come before: sums
// holds w x + r h for all steps, [sample][step][gate][unit], with ONNX's gates i, o, f, c.
#include "adapters/native/cuda/kernels/pack.cuh"

DEVICE float sigmoid(float x)
{
	return 1.0f / (1.0f + expf(-x));
}

// Where a thread works: unit `unit` of sample `sample`, in step a.step.
struct recurrent_place {
	long long sample, row; // row: of the step, among samples * steps
	int unit;
};
DEVICE recurrent_place recurrent_at(const recurrent_arguments &a, long long i)
{
	recurrent_place at;

	at.unit = take_index(&i, a.hidden);
	at.sample = i;
	at.row = i * a.steps + a.step;
	return at;
}

// Stores h for the next step: before[row] is what step `row` began with; the last step's is the
// layer's result.
template <class T>
DEVICE void store_state(T *before, T *last, const recurrent_arguments &a, const recurrent_place &at,
			float h)
{
	if (a.step + 1 == a.steps)
		last[at.sample * a.hidden + at.unit] = from_float<T>(h);
	else
		before[(at.row + 1) * a.hidden + at.unit] = from_float<T>(h);
	if (a.step == 0 && before)
		before[at.row * a.hidden + at.unit] = from_float<T>(0.0f);
}

// In training, sums become the gates' values and each step has its cells; otherwise there is one
// place for the cells.
template <class T>
DEVICE void lstm_cell(float *sums, float *cells, T *before, T *last, const float *bias,
		      const recurrent_arguments &a)
{
	long long plane = (long long)a.batch * a.hidden;

	FOR_ELEMENTS (i, plane) {
		recurrent_place at = recurrent_at(a, i);
		float *own = sums + at.row * 4 * a.hidden + at.unit, gate[4];

		for (int g = 0; g < 4; g++) {
			float sum = own[g * a.hidden] + bias[g * a.hidden + at.unit];

			gate[g] = g < 3 ? sigmoid(sum) : tanhf(sum);
			if (a.training)
				own[g * a.hidden] = gate[g];
		}
		float *cell = cells + (a.training ? a.step * plane : 0) + i;
		float c = gate[0] * gate[3];

		if (a.step > 0)
			c += gate[2] * cell[a.training ? -plane : 0];
		*cell = c;
		store_state(before, last, a, at, gate[1] * tanhf(c));
	}
}

// d loss / d h of the step: given for the last step, otherwise from the product after it.
template <class T>
DEVICE float state_gradient(const float *dh, const T *dy, const recurrent_arguments &a, long long i)
{
	return a.step + 1 == a.steps ? to_float(dy[i]) : dh[i];
}

// da: d loss / d sums, [sample][step][gate][unit]; dc: of the cell, [sample][unit], of the step
// before when it returns.
template <class T>
DEVICE void lstm_cell_grad(T *da, float *dc, const float *dh, const T *dy, const float *gates,
			   const float *cells, const recurrent_arguments &a)
{
	long long plane = (long long)a.batch * a.hidden;

	FOR_ELEMENTS (i, plane) {
		recurrent_place at = recurrent_at(a, i);
		long long start = at.row * 4 * a.hidden + at.unit;
		float in = gates[start], out = gates[start + a.hidden];
		float keep = gates[start + 2 * a.hidden], value = gates[start + 3 * a.hidden];
		const float *cell = cells + a.step * plane + i;
		float squashed = tanhf(*cell), before = a.step > 0 ? cell[-plane] : 0.0f;
		float slope = state_gradient(dh, dy, a, i);
		float d = slope * out * (1.0f - squashed * squashed);

		if (a.step + 1 < a.steps)
			d += dc[i];
		dc[i] = d * keep;
		da[start] = from_float<T>(d * value * in * (1.0f - in));
		da[start + a.hidden] = from_float<T>(slope * squashed * out * (1.0f - out));
		da[start + 2 * a.hidden] = from_float<T>(d * before * keep * (1.0f - keep));
		da[start + 3 * a.hidden] = from_float<T>(d * in * (1.0f - value * value));
	}
}

#define LSTM_CELL(T, suffix)                                                                       \
	KERNEL(lstm_cell_##suffix)                                                                 \
	(float *sums, float *cells, T *before, T *last, const float *bias, recurrent_arguments a)  \
	{                                                                                          \
		lstm_cell<T>(sums, cells, before, last, bias, a);                                  \
	}
FOR_TYPES(LSTM_CELL)

KERNEL(rnn_cell)
(const float *sums, float *before, float *last, const float *bias, recurrent_arguments a)
{
	FOR_ELEMENTS (i, (long long)a.batch * a.hidden) {
		recurrent_place at = recurrent_at(a, i);
		float sum = sums[at.row * a.hidden + at.unit] + bias[at.unit];

		store_state(before, last, a, at, sum < 0.0f ? 0.0f : sum);
	}
}

#define LSTM_CELL_GRAD(T, suffix)                                                                  \
	KERNEL(lstm_cell_grad_##suffix)                                                            \
	(T *da, float *dc, const float *dh, const T *dy, const float *gates, const float *cells,   \
	 recurrent_arguments a)                                                                    \
	{                                                                                          \
		lstm_cell_grad<T>(da, dc, dh, dy, gates, cells, a);                                \
	}
FOR_TYPES(LSTM_CELL_GRAD)

KERNEL(rnn_cell_grad)
(float *da, const float *dh, const float *dy, const float *sums, const float *bias,
 recurrent_arguments a)
{
	FOR_ELEMENTS (i, (long long)a.batch * a.hidden) {
		recurrent_place at = recurrent_at(a, i);
		long long own = at.row * a.hidden + at.unit;
		float slope = state_gradient(dh, dy, a, i);

		da[own] = sums[own] + bias[at.unit] > 0.0f ? slope : 0.0f;
	}
}
