settings => settings.map(([sigma, q, T, k, delta, direction]) => {
  const A = PrivacyAccountant;
  const made = new A.PoissonDPSGD({noiseMultiplier: sigma, samplingProbability: q, steps: T, groupSize: k});
  try { const b = made.epsilon(delta, direction); return [b.lower, b.upper]; }
  catch (error) { if (error instanceof A.NoBracketError) return error.message; throw error; }
})
