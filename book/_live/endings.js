/* The decision of chapter 18: what the answers to its questions lead to, as numbers, as words and as Python. No kept library
   has it: it is the chapter's own list of rules, and a test holds both together. Needs accountant.js before it. */
(function (root) {
  "use strict";

  const { PoissonDPSGD, FixedBatchDPSGD, LastIterate, knownBatches, replaced, NoBracketError } = root.PrivacyAccountant;
  const MOST_BINS = 8192; // batches an epoch that the library's balls in bins takes
  const UNMOVED = "; choose zero-out, or draw batches by Poisson sampling";

  // Where each ending is proved: what the link says, and where it leads.
  const PROOFS = {
    poisson: ["chapter 5, Theorem 3.1 of its source", "05_group_privacy.html#poisson-sampling-theorem-31"],
    fixed: ["chapter 5 in depth, Theorem 3.3 of its source", "05_group_privacy_in_depth.html#fixed-batch-size-theorem-33"],
    last: ["chapter 6", "06_last_iterate.html"],
    swap: ["this chapter: a swap is a removal and an addition", "#a-swap-is-a-removal-and-an-addition"],
    told: ["chapter 10: privacy is the length of a column", "10_matrix_mechanism.html#privacy-is-the-length-of-a-column"],
    mmcc: ["chapter 12", "12_mmcc.html"],
    bins: ["chapters 14 and 15", "14_balls_in_bins.html"],
  };

  const SCHEMES = {
    poisson: { name: "Poisson sampling", words: "In each step each record joins by a coin of its own; coins are fresh in each step and never shown." },
    fixed: { name: "fixed size", words: "Each step draws exactly B records anew; n counts the group, and without it at least B records are left." },
    known: { name: "shuffled, in order, or known", words: "A record takes part at most once in an epoch, and the adversary may know when." },
    bins: { name: "balls in bins", words: "Each record draws its batch once, and the others stay where they are." },
  };

  /** A number as Python reads it. */
  function number(x) {
    return Number.isInteger(x) && Math.abs(x) < 1e15 ? String(x) : x.toString();
  }

  // ------------------------------------------------------------------ what can be computed: numbers and Python of each kind

  /** The mechanism of the library itself: made(values, {sigma, steps, group}), and its call in Python, with these as text. */
  const POISSON = {
    made: (values, { sigma, steps, group }) => new PoissonDPSGD({ noiseMultiplier: sigma, samplingProbability: values.q, steps, groupSize: group }),
    call: (values, sigma, steps) => `dplib.PoissonDPSGD(noise_multiplier=${sigma}, sampling_probability=${values.rate}, steps=${steps}${size(values)})`,
  };
  const FIXED = {
    made: (values, { sigma, steps, group }) => {
      const datasetSize = values.records - group;
      if (datasetSize < values.batch) throw new NoBracketError("fewer records than a batch are left without the group");
      // Twice the sensitivity: what Poisson sampling leaves as a small epsilon is a large one here, and takes more work.
      return new FixedBatchDPSGD({ noiseMultiplier: sigma, groupSize: group, batchSize: values.batch, datasetSize, steps, patience: 5 });
    },
    call: (values, sigma, steps) => `dplib.FixedBatchDPSGD(noise_multiplier=${sigma}, batch_size=${values.batch}, dataset_size=${values.records} - ${values.group}, steps=${steps}${size(values)})`,
  };
  const LAST = {
    made: (values, { sigma, steps }) => new LastIterate({ noiseMultiplier: sigma, samplingProbability: values.q, steps }),
    call: (values, sigma, steps) => `dplib.LastIterate(noise_multiplier=${sigma}, sampling_probability=${values.rate}, steps=${steps})`,
  };

  function size({ group }) {
    return group > 1 ? `, group_size=${group}` : "";
  }

  /** Python that asks a mechanism. */
  function asked({ call }) {
    return (values, found) => {
      const { epsilon, delta, unknown } = values;
      if (unknown === "sigma") return `import dplib\n\nrun = ${call(values, "1", values.steps)}\nprint(dplib.calibrate(run, epsilon=${number(epsilon)}, delta=${number(delta)}).noise_multiplier)`;
      if (unknown === "epsilon") return `import dplib\n\nrun = ${call(values, number(values.sigma), values.steps)}\nprint(run.epsilon(delta=${number(delta)}).upper)`;
      return `import bisect\nimport dplib\n\ndef spent(steps):\n    run = ${call(values, number(values.sigma), "steps")}\n    return run.epsilon(delta=${number(delta)}).upper\n\n${largest(values, found)}`;
    };
  }

  /** The line that looks for the largest number of steps; a range that ends beyond what was found. */
  function largest({ epsilon }, found) {
    return `print(bisect.bisect(range(1, ${Math.max(10, 2 * found)}), ${number(epsilon)}, key=spent))`;
  }

  const direct = (kind, more) => ({ make: kind.made, python: asked(kind), directions: true, ...more });

  /** Removed, then added: an upper bound. */
  function swapped(kind) {
    const python = (values, found) => {
      const { epsilon, delta, unknown } = values, half = `${number(delta)} / 2`;
      const spent = (argument, sigma, steps) => `def spent(${argument}):\n    run = ${kind.call(values, sigma, steps)}\n    first = run.epsilon(${half}, "remove").upper\n    return first + run.epsilon(${half} * math.exp(-first), "add").upper\n\n`;
      if (unknown === "sigma") {
        const ends = [found / 1.2, found * 1.2].map((x) => x.toPrecision(3)).join(", ");
        return `import math\nimport dplib\nfrom scipy import optimize\n\n${spent("sigma", "sigma", values.steps)}print(optimize.brentq(lambda sigma: spent(sigma) - ${number(epsilon)}, ${ends}, xtol=1e-12))`;
      }
      if (unknown === "epsilon") return `import math\nimport dplib\n\n${spent("sigma", "sigma", values.steps)}print(spent(${number(values.sigma)}))`;
      return `import bisect\nimport math\nimport dplib\n\n${spent("steps", number(values.sigma), "steps")}${largest(values, found)}`;
    };
    return { make: (...all) => replaced(kind.made(...all)), python, kind: "upper bound, not attained", proof: PROOFS.swap };
  }

  /** Batches told: one Gaussian release; multiple: of the length that one record's contribution has. */
  function told(multiple, more) {
    const make = (values, { sigma, steps, group }) => knownBatches({ noiseMultiplier: sigma, participations: Math.ceil(steps / values.perEpoch), groupSize: multiple * group });
    const python = (values, found) => {
      const { epsilon, delta, unknown, sigma, group } = values, times = multiple * group > 1 ? `${multiple * group} * ` : "";
      const length = `${times}math.sqrt(${unknown === "steps" ? `math.ceil(steps / ${values.perEpoch})` : values.epochs})`;
      const ask = () => `gaussian.epsilon(mu=${length} / ${number(sigma)}, delta=${number(delta)})`;
      if (unknown === "sigma") return `import math\nfrom dplib import gaussian\n\nprint(${length} / gaussian.calibrate(epsilon=${number(epsilon)}, delta=${number(delta)}))`;
      if (unknown === "epsilon") return `import math\nfrom dplib import gaussian\n\nprint(${ask()})`;
      return `import bisect\nimport math\nfrom dplib import gaussian\n\ndef spent(steps):\n    return ${ask()}\n\n${largest(values, found)}`;
    };
    return { make, python, proof: PROOFS.told, kind: "closed form, no amplification", ...more };
  }

  /** Balls in bins as if told; where the library knows the exact number, Python asks for it as well. */
  function bins(multiple, exact) {
    const bound = told(multiple, { kind: "upper bound: the one for known batches" });
    const python = (values, found) => {
      const text = bound.python(values, found), { perEpoch: b, epochs, unknown } = values;
      if (!exact || values.group > 1 || b > MOST_BINS || unknown === "steps") return text;
      const run = (sigma) => `dplib.BallsInBins(dplib.matrices.identity(${b * epochs}), noise_multiplier=${sigma}, batches_per_epoch=${b}, epochs=${epochs})`;
      const ask = unknown === "sigma" ? `dplib.calibrate(${run(1)}, epsilon=${number(values.epsilon)}, delta=${number(values.delta)}).noise_multiplier`
        : `${run(number(values.sigma))}.epsilon(delta=${number(values.delta)}).upper`;
      return `${text.replace("import math\n", "import math\nimport dplib\n")}\nprint(${ask})  # exact, and smaller`;
    };
    return { ...bound, python, next: exact ? "Its exact number, which is smaller, comes from the last line of the Python below." : "" };
  }

  /** Correlated noise: only Python; ask(values) makes the expression for epsilon or sigma from an encoder and its longest column. */
  function correlated(ask, head, kind, proof) {
    const python = (values) => {
      const rounds = values.perEpoch * values.epochs;
      return `${head}\nencoder = dplib.matrices.optimal_counting(${rounds}, bands=${Math.min(16, rounds)})  # put yours here\nlongest = encoder.column_norms().max()\nprint(${ask(values)})`;
    };
    return { library: true, python, kind, proof };
  }

  function matrixMechanism(values) {
    const run = (sigma) => `dplib.MatrixMechanism(encoder, noise_multiplier=${sigma}longest, sampling_probability=${values.rate})`;
    return values.unknown === "sigma" ? `dplib.calibrate(${run("")}, epsilon=${number(values.epsilon)}, delta=${number(values.delta)}).noise_multiplier / longest`
      : `${run(`${number(values.sigma)} * `)}.epsilon(delta=${number(values.delta)}).upper`;
  }

  function certified(values) {
    const run = (sigma) => `dplib.BallsInBins(encoder, noise_multiplier=${sigma}longest, batches_per_epoch=${values.perEpoch}, epochs=${values.epochs})`;
    const how = `delta=${number(values.delta)}, method="certificate"`;
    return values.unknown === "sigma" ? `dplib.calibrate(${run("")}, epsilon=${number(values.epsilon)}, ${how}).noise_multiplier / longest`
      : `${run(`${number(values.sigma)} * `)}.epsilon(${how}).upper`;
  }

  const gaussianOf = (multiple, sensitivity) => (values) => {
    const times = multiple * values.group > 1 ? `${multiple * values.group} * ` : "", length = `${times}${sensitivity(values)} / longest`;
    return values.unknown === "sigma" ? `${length} / gaussian.calibrate(epsilon=${number(values.epsilon)}, delta=${number(values.delta)})`
      : `gaussian.epsilon(mu=${length} / ${number(values.sigma)}, delta=${number(values.delta)})`;
  };
  const kept = (values) => `sensitivity.round_robin(encoder, ${values.perEpoch}, ${values.epochs})`;
  const anew = (values) => `sensitivity.min_separation(encoder, 1, ${values.epochs}).upper`;
  const WITH_SENSITIVITY = "import dplib\nfrom dplib import gaussian, sensitivity\n";

  // ------------------------------------------------------------------ the decision

  const refused = (why) => ({ name: "nothing proved", refused: why });

  /** scheme, unit, relation, released -> the ending, by the name that the chapter's list gives it. */
  function decide({ scheme, unit, relation, released, unknown }) {
    const swap = relation === "swap", group = unit === "group", multiple = swap ? 2 : 1;
    const many = group ? ", group" : "";
    if (scheme === "known" && relation === "add") {
      return refused(`Nothing is proved here for a record that is added to shuffled batches or taken out of them, since all others move${UNMOVED}.`);
    }
    if (released === "sums") return decideCorrelated({ scheme, group, swap, unknown, multiple });
    if (scheme === "known") return told(multiple, { name: swap ? "no amplification, swap" : `no amplification${many}`, directions: !swap });
    if (scheme === "bins") return { name: swap ? "bins told, swap" : group ? "bins told, group" : "bins", ...bins(multiple, !swap && !group) };
    if (scheme === "fixed") {
      if (relation === "add") return { name: `fixed batch${many}`, ...direct(FIXED, { kind: "exact", proof: PROOFS.fixed }) };
      const why = swap ? "" : "With zero-out both worlds are mixtures, for which no exact account is known: so the bound removes the record and adds an empty one. For an exact number choose add/remove, or Poisson sampling.";
      return { name: "fixed batch, swap", ...swapped(FIXED), next: why };
    }
    if (swap) return { name: "Poisson, swap", ...swapped(POISSON) };
    if (released === "all" || group) return { name: `Poisson${many}`, ...direct(POISSON, { kind: "exact", proof: PROOFS.poisson }) };
    if (unknown === "steps") return refused("ε of the last iterate does not always grow with T, so there is no largest T to look for. Choose to find ε or σ at the T that you plan, or count all models as released.");
    return { name: "last iterate", ...direct(LAST, { kind: "exact, for linear losses", proof: PROOFS.last, directions: false }) };
  }

  function decideCorrelated({ scheme, group, swap, unknown, multiple }) {
    if (scheme === "fixed") return refused("Nothing is proved here for correlated noise with batches of fixed size. Choose Poisson sampling or balls in bins, or noise that is independent.");
    if (scheme === "poisson" && (group || swap)) return refused("With correlated noise and Poisson sampling only one record that is added, removed or zeroed out has a theorem here. Choose balls in bins, or noise that is independent.");
    if (unknown === "steps") return refused("An encoder belongs to one number of steps, so there is no largest T to look for. Choose to find ε or σ with the encoder of the T that you plan.");
    if (scheme === "poisson") return { name: "MMCC", ...correlated(matrixMechanism, "import dplib\n", "upper bound", PROOFS.mmcc) };
    const name = scheme === "known" ? `no amplification${swap ? ", swap" : group ? ", group" : ""}` : `bins told, ${swap ? "swap" : "group"}`;
    if (scheme === "known" || swap || group) {
      const sensitivity = scheme === "known" ? anew : kept;
      return { name, ...correlated(gaussianOf(multiple, sensitivity), WITH_SENSITIVITY, "upper bound: batches told", PROOFS.told) };
    }
    return { name: "bins, correlated", ...correlated(certified, "import dplib\n", "certificate: an upper bound that is wrong with a stated small probability", PROOFS.bins) };
  }

  // ------------------------------------------------------------------ the assumptions in words

  const RELATIONS = {
    add: (many) => `The other world lacks ${many}; nothing else differs.`,
    zero: (many) => `In the other world the contributions of ${many} are 0; the number of records is the same.`,
    swap: (many) => `In the other world others stand in the place of ${many}.`,
  };
  const RELEASED = {
    all: "Every noisy sum may be known, and with it every model.",
    last: "That only the final model is known counts for Poisson sampling with one record added, removed or zeroed out; the gradients must not depend on the model.",
    sums: "σ is the noise over the clip norm and over the longest column of the encoder.",
  };

  function assumptions({ scheme, relation, released, group }) {
    const many = group > 1 ? `up to ${group} records together` : "the record";
    return [SCHEMES[scheme].words, RELATIONS[relation](many), RELEASED[released],
      "Each gradient is clipped to norm 1 and summed; Gaussian noise of standard deviation σ is added to the sum; what follows, such as a division, does not look at the data."].join(" ");
  }

  root.WizardEndings = { decide, assumptions, SCHEMES };
})(window);
