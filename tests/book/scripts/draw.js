([scheme, n, b, E, seeds]) => Array.from({length: seeds}, (_, seed) =>
  SamplingSchemes.SCHEMES[scheme].draw(n, b, E, SamplingSchemes.random(seed)).map((batch) => [...batch]))
