settings => settings.map(([noiseMultiplier, participations, groupSize, delta]) => {
  const found = PrivacyAccountant.knownBatches({noiseMultiplier, participations, groupSize}).epsilon(delta);
  return [found.lower, found.upper];
})
