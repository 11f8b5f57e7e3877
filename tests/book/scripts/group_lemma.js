settings => settings.map(([noiseMultiplier, samplingProbability, steps, delta, k]) => {
  const A = PrivacyAccountant;
  try { return A.groupLemma(new A.PoissonDPSGD({noiseMultiplier, samplingProbability, steps}), delta, k); }
  catch (error) { if (error instanceof A.NoBracketError) return null; throw error; }
})
