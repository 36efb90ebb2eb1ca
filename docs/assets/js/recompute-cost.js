// What saving and recomputing cost, and where they meet.
// The same functions stand in examples/backward_grid/crossover.py; both are held to one table of
// cases, tests/site/recompute_cases.json.

// Bytes and operations per second, from the data sheets that the lesson's footnotes name.
export const MACHINES = {
  H100: { bandwidth: 3.35e12, rates: { tensor: 490e12, fp32: 67e12, special: 4.18e12 } },
  H200: { bandwidth: 4.8e12, rates: { tensor: 989e12, fp32: 67e12, special: 4.18e12 } },
  A100: { bandwidth: 2.039e12, rates: { tensor: 312e12, fp32: 19.5e12, special: 2.44e12 } },
  L4: { bandwidth: 0.3e12, rates: { tensor: 121e12, fp32: 30.3e12, special: 1.89e12 } },
};

// Write every element in the forward, read it back in the backward.
export function saveSeconds(elements, savedBytes, bandwidth) {
  return (elements * 2 * savedBytes) / bandwidth;
}

export function recomputeSeconds(elements, operations, rate) {
  return (elements * operations) / rate;
}

// Operations per element at which both cost the same; the number of elements cancels.
export function crossover(savedBytes, bandwidth, rate) {
  return (2 * savedBytes * rate) / bandwidth;
}

export function verdict(elements, operations, savedBytes, bandwidth, rate) {
  const save = saveSeconds(elements, savedBytes, bandwidth);
  const recompute = recomputeSeconds(elements, operations, rate);
  if (Math.abs(save - recompute) <= 1e-9 * Math.max(save, recompute)) return "equal";
  return recompute < save ? "recompute" : "save";
}

// The rows that examples/backward_grid/recompute_sweep.py prints: unit, operations, two times.
export function readPoints(text) {
  const row = /^(\w+) +(\d+) +(\d+\.\d+) +(\d+\.\d+)$/gm;
  return Array.from(text.matchAll(row), ([, unit, ...numbers]) => {
    const [operations, save, recompute] = numbers.map(Number);
    return { unit, operations, save, recompute };
  });
}

// Where the line between two neighbouring points crosses, or null.
export function measuredCrossover(points) {
  for (let i = 1; i < points.length; i++) {
    const before = points[i - 1].recompute - points[i - 1].save;
    const after = points[i].recompute - points[i].save;
    if (before <= 0 && after > 0) {
      const width = points[i].operations - points[i - 1].operations;
      return points[i - 1].operations + (width * -before) / (after - before);
    }
  }
  return null;
}
