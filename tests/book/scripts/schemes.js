settings => settings.map(([sigma, B, n, T, k, delta, E]) => {
  const A = PrivacyAccountant, common = {noiseMultiplier: sigma, groupSize: k};
  const ends = (made) => {
    try { const b = made.epsilon(delta); return [b.lower, b.upper]; }
    catch (error) { if (error instanceof A.NoBracketError) return error.message; throw error; }
  };
  const fixed = new A.FixedBatchDPSGD({...common, batchSize: B, datasetSize: n - k, steps: T});
  return {fixed: ends(fixed), known: ends(A.knownBatches({...common, participations: E})),
    last: ends(new A.LastIterate({...common, samplingProbability: B / n, steps: T})),
    "poisson, swap": ends(new A.MixedDPSGD({...common, samplingProbability: B / n, steps: T, others: k})),
    "poisson, mixed": ends(new A.MixedDPSGD({...common, samplingProbability: B / n, steps: T, others: 1 + k % 7})),
    "fixed, swap": ends(A.replaced(fixed))};
})
