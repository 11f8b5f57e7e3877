/* The decision of chapter 18: what the answers to its questions lead to, as numbers, as words and as Python. No kept library
   has it: it is the chapter's own list of rules, and a test holds both together. Needs accountant.js before it. */
(function (root) {
  "use strict";

  const { PoissonDPSGD, MixedDPSGD, FixedBatchDPSGD, LastIterate, knownBatches, replaced, NoBracketError } = root.PrivacyAccountant;
  // What the library takes: batches of an epoch of bins, rounds of a block of random allocation, rounds by sampling; blocks; records whose batches are cut.
  const MOST_ROUNDS = 8192, MOST_BLOCKS = 1000, MOST_RECORDS = 1e10;
  const UNMOVED = "; choose zero-out, or draw batches by Poisson sampling";

  // Where each ending is proved: what the link says, and where it leads.
  const PROOFS = {
    poisson: ["chapter 5, Theorem 3.1 of its source", "05_group_privacy.html#poisson-sampling-theorem-3-1"],
    fixed: ["chapter 5 in depth, Theorem 3.3 of its source", "05_group_privacy_in_depth.html#fixed-batch-size-theorem-3-3"],
    last: ["chapter 6", "06_last_iterate.html"],
    swap: ["this chapter: a swap is a removal and an addition", "#a-swap-is-a-removal-and-an-addition"],
    told: ["chapter 10: privacy is the length of a column", "10_matrix_mechanism.html#privacy-is-the-length-of-a-column"],
    mmcc: ["chapter 12, which names the bounds", "12_mmcc.html"],
    bins: ["chapters 14 and 15", "14_balls_in_bins.html"],
    twoSided: ["mixtures on both sides, A-22", "../book/accountants.html#mixtures-on-both-sides"],
    displacing: ["this chapter: a swap is a removal and an addition; the smaller number: A-23", "#a-swap-is-a-removal-and-an-addition"],
    cut: ["records that displace others, A-24", "../book/accountants.html#records-that-displace-others"],
    random: ["random rounds, A-26", "../book/accountants.html#random-rounds-and-rounds-with-a-pause"],
    pauses: ["rounds with a pause, A-27 and A-28", "../book/accountants.html#random-rounds-and-rounds-with-a-pause"],
    phases: ["phases, A-25", "../book/accountants.html#bins-among-other-phases"],
  };

  const SCHEMES = {
    poisson: { name: "Poisson sampling", words: "In each step each record joins by a coin of its own; coins are fresh in each step and never shown." },
    fixed: { name: "fixed size", words: "Each step draws exactly B records anew; n counts the group, and without it at least B records are left." },
    known: { name: "shuffled, in order, or known", words: "A record takes part at most once in an epoch, and the adversary may know when." },
    bins: { name: "balls in bins", words: "Each record draws its batch once, and the others stay where they are." },
    truncated: { name: "truncated Poisson sampling", words: "In each step each record joins by a coin of its own; of more records than the largest batch a random part is kept, every part as likely as any other." },
    allocation: { name: "random allocation", words: "Each record draws its rounds of each block, anew in each block, and the others stay where they are; a block has as many times n/B rounds as a record has participations in it.", needs: ["parts", "participations"] },
    pauses: { name: "b-min-sep sampling", words: "Each record joins by a coin of its own, and may join again as many steps later as the separation says; it begins as if this had gone on for long, so that every batch has B records on average.", needs: ["separation", "a separation"] },
    phases: { name: "phases", words: "Each phase draws its batches anew, and the records that differ are the same in every phase." },
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
  /** Half the noise: a record that joins a batch which is cut displaces one other. */
  const HALVED = {
    made: (values, { sigma, ...more }) => POISSON.made(values, { sigma: sigma / 2, ...more }),
    call: (values, sigma, steps) => POISSON.call(values, `${sigma} / 2`, steps),
    times: "2 * ",
  };
  const FIXED = {
    made: (values, { sigma, steps, group, left = values.records - group }) => {
      if (left < values.batch) throw new NoBracketError("fewer records than a batch are left without the group");
      // Twice the sensitivity: what Poisson sampling leaves as a small epsilon is a large one here, and takes more work.
      return new FixedBatchDPSGD({ noiseMultiplier: sigma, groupSize: group, batchSize: values.batch, datasetSize: left, steps, patience: 5 });
    },
    call: (values, sigma, steps, group = values.group) => `dplib.FixedBatchDPSGD(noise_multiplier=${sigma}, batch_size=${values.batch}, dataset_size=${values.records} - ${values.group}, steps=${steps}${size({ group })})`,
  };
  const LAST = {
    made: (values, { sigma, steps }) => new LastIterate({ noiseMultiplier: sigma, samplingProbability: values.q, steps }),
    call: (values, sigma, steps) => `dplib.LastIterate(noise_multiplier=${sigma}, sampling_probability=${values.rate}, steps=${steps})`,
  };

  function size({ group }) {
    return group > 1 ? `, group_size=${group}` : "";
  }

  /** Records on both sides: as many others in their places, or any number. */
  const MIXED = {
    made: (values, { sigma, steps, group }) => new MixedDPSGD({ noiseMultiplier: sigma, samplingProbability: values.q, steps, groupSize: group, others: values.others }),
    call: (values, sigma, steps) => `dplib.PoissonDPSGD(noise_multiplier=${sigma}, sampling_probability=${values.rate}, steps=${steps}${neighbours(values)})`,
  };
  // Mechanisms of the library that the page has no accountant for.
  const REPLACED = {
    call: (values, sigma, steps) => `dplib.FixedBatchDPSGD(noise_multiplier=${sigma}, batch_size=${values.batch}, dataset_size=${values.records}, steps=${steps}${neighbours(values)})`,
    fits: ({ batch, records }) => batch < records,
  };
  const TRUNCATED = {
    call: (values, sigma, steps) => `dplib.TruncatedPoissonDPSGD(noise_multiplier=${sigma}, sampling_probability=${values.rate}, dataset_size=${values.records}, largest_batch=${values.largest}, steps=${steps}${neighbours(values)})`,
    fits: ({ records }) => records <= MOST_RECORDS,
  };
  const BINS = {
    call: ({ perEpoch: b, epochs }, sigma) => `dplib.BallsInBins(dplib.matrices.identity(${b * epochs}), noise_multiplier=${sigma}, batches_per_epoch=${b}, epochs=${epochs})`,
    composes: false,
    fits: ({ perEpoch }) => perEpoch <= MOST_ROUNDS,
  };
  const ALLOCATION = {
    call: (values, sigma, steps) => `dplib.RandomAllocation(noise_multiplier=${sigma}, rounds=${blockOf(values)[1]}, participations=${values.parts}, epochs=${Math.ceil(steps / blockOf(values)[1])})`,
    how: ', method="bound"',
    composes: false,
    fits: (values) => blockOf(values)[1] <= MOST_ROUNDS && values.steps <= MOST_BLOCKS * blockOf(values)[1],
  };

  /** How the two worlds differ, as arguments of the library. */
  function neighbours({ relation, group, others }) {
    if (relation === "mix") return `, inserted=${group}, deleted=${others}`;
    return size({ group }) + { add: "", zero: ', adjacency="zero-out"', swap: ', adjacency="substitution"' }[relation];
  }

  /** [in how many rounds of a block a record takes part at most, rounds of a block]. */
  function blockOf({ scheme, parts, separation, perEpoch }) {
    return scheme === "allocation" ? [parts, parts * perEpoch] : scheme === "pauses" ? [1, separation] : [1, perEpoch];
  }

  /** Python that asks a mechanism. */
  function asked({ call, times = "" }) {
    return (values, found) => {
      const { epsilon, delta, unknown } = values;
      if (unknown === "sigma") return `import dplib\n\nrun = ${call(values, "1", values.steps)}\nprint(${times}dplib.calibrate(run, epsilon=${number(epsilon)}, delta=${number(delta)}).noise_multiplier)`;
      if (unknown === "epsilon") return `import dplib\n\nrun = ${call(values, number(values.sigma), values.steps)}\nprint(run.epsilon(delta=${number(delta)}).upper)`;
      return `import bisect\nimport dplib\n\ndef spent(steps):\n    run = ${call(values, number(values.sigma), "steps")}\n    return run.epsilon(delta=${number(delta)}).upper\n\n${largest(values, found)}`;
    };
  }

  /** The line that looks for the largest number of steps; a range that ends beyond what was found. */
  function largest({ epsilon }, found) {
    return `print(bisect.bisect(range(1, ${Math.max(10, 2 * found)}), ${number(epsilon)}, key=spent))`;
  }

  const direct = (kind, more) => ({ make: kind.made, python: asked(kind), directions: true, ...more });

  /** An ending of the page with a smaller number of the library, which its Python prints as well where that fits: the comment says what it is. */
  function tightened(ending, { call, how = "", composes = true, fits = () => true }, comment) {
    const more = (values) => {
      const { epsilon, delta, unknown } = values;
      if (unknown === "sigma") return `print(dplib.calibrate(${call(values, "1", values.steps)}, epsilon=${number(epsilon)}, delta=${number(delta)}).noise_multiplier)  # ${comment}`;
      if (unknown === "epsilon") return `print(${call(values, number(values.sigma), values.steps)}.epsilon(delta=${number(delta)}${how}).upper)  # ${comment}`;
      return `\ndef smaller(steps):\n    return ${call(values, number(values.sigma), "steps")}.epsilon(delta=${number(delta)}).upper\n\nmost = 1\nwhile smaller(most) <= ${number(epsilon)}:\n    most *= 2\nprint(bisect.bisect(range(1, most), ${number(epsilon)}, key=smaller))  # ${comment}`;
    };
    const printed = (values) => (composes || values.unknown !== "steps") && fits(values);
    const python = (values, found) => {
      const text = ending.python(values, found);
      return printed(values) ? `${/^import dplib$/m.test(text) ? text : text.replace("import math\n", "import math\nimport dplib\n")}\n${more(values)}` : text;
    };
    const next = (values) => (printed(values) ? "That one is the last line of the Python below." : "");
    return { ...ending, python, next, kind: `${ending.kind}; the library has a better one` };
  }

  /** Removed, then others added: an upper bound. */
  function swapped(kind) {
    const second = ({ others, group }) => others || group; // a zeroed record is another one, an empty one
    const make = (values, { sigma, steps }) => {
      const [first, last] = [values.group, second(values)].map((group) => kind.made(values, { sigma, steps, group, left: values.records - values.group }));
      return replaced(first, last);
    };
    const python = (values, found) => {
      const { epsilon, delta, unknown } = values, half = `${number(delta)} / 2`, same = second(values) === values.group;
      const spent = (argument, sigma, steps) => `def spent(${argument}):\n    run = ${kind.call(values, sigma, steps)}\n    first = run.epsilon(${half}, "remove").upper\n`
        + (same ? "" : `    run = ${kind.call(values, sigma, steps, second(values))}\n`) + `    return first + run.epsilon(${half} * math.exp(-first), "add").upper\n\n`;
      if (unknown === "sigma") return `import math\nimport dplib\nfrom scipy import optimize\n\n${spent("sigma", "sigma", values.steps)}high = 2.0**20\nwhile spent(high / 2) <= ${number(epsilon)}:\n    high /= 2\nprint(optimize.brentq(lambda sigma: spent(sigma) - ${number(epsilon)}, high / 2, high, xtol=1e-12))`;
      if (unknown === "epsilon") return `import math\nimport dplib\n\n${spent("sigma", "sigma", values.steps)}print(spent(${number(values.sigma)}))`;
      return `import bisect\nimport math\nimport dplib\n\n${spent("steps", number(values.sigma), "steps")}${largest(values, found)}`;
    };
    return { make, python, kind: "upper bound, not attained", proof: PROOFS.swap };
  }

  /** Batches told: one Gaussian release, of the length that the contributions of all records that differ have together. */
  function told(more) {
    const times = (values, steps) => blockOf(values)[0] * Math.ceil(steps / blockOf(values)[1]);
    const make = (values, { sigma, steps, group }) => knownBatches({ noiseMultiplier: sigma, participations: times(values, steps), groupSize: group + values.others });
    const python = (values, found) => {
      const { epsilon, delta, unknown, sigma } = values, many = values.group + values.others, [part, block] = blockOf(values);
      const length = `${many > 1 ? `${many} * ` : ""}math.sqrt(${unknown === "steps" ? `${part > 1 ? `${part} * ` : ""}math.ceil(steps / ${block})` : times(values, values.steps)})`;
      const ask = () => `gaussian.epsilon(mu=${length} / ${number(sigma)}, delta=${number(delta)})`;
      if (unknown === "sigma") return `import math\nfrom dplib import gaussian\n\nprint(${length} / gaussian.calibrate(epsilon=${number(epsilon)}, delta=${number(delta)}))`;
      if (unknown === "epsilon") return `import math\nfrom dplib import gaussian\n\nprint(${ask()})`;
      return `import bisect\nimport math\nfrom dplib import gaussian\n\ndef spent(steps):\n    return ${ask()}\n\n${largest(values, found)}`;
    };
    return { make, python, proof: PROOFS.told, kind: "closed form, no amplification", ...more };
  }

  /** Pauses: the smaller of two bounds. A record that pauses costs at most as much as one with the same coins that never does, and at most as much as one whose steps are told. */
  function paused() {
    const known = told(), coin = (values) => `${values.batch} / (${values.records} - ${values.separation - 1} * ${values.batch})`;
    const coins = (values) => ({ ...values, q: values.batch / (values.records - (values.separation - 1) * values.batch), rate: coin(values) });
    const make = (values, chosen) => ({
      epsilon: (delta) => {
        const last = known.make(values, chosen).epsilon(delta).upper;
        try {
          return { upper: Math.min(POISSON.made(coins(values), chosen).epsilon(delta).upper, last) };
        } catch (error) {
          if (error instanceof NoBracketError) return { upper: last };
          throw error;
        }
      },
    });
    const python = (values, found) => {
      const { epsilon, delta, unknown, separation: b } = values, call = (sigma, steps) => POISSON.call(coins(values), sigma, steps), mu = (steps) => `math.sqrt(math.ceil(${steps} / ${b}))`;
      const head = "import math\nimport dplib\nfrom dplib import gaussian\n\n", at = number(delta);
      if (unknown === "sigma") return `${head}coins = dplib.calibrate(${call("1", values.steps)}, epsilon=${number(epsilon)}, delta=${at}).noise_multiplier\nprint(min(coins, ${mu(values.steps)} / gaussian.calibrate(epsilon=${number(epsilon)}, delta=${at})))`;
      const spent = (argument, sigma, steps) => `def spent(${argument}):\n    coins = ${call(sigma, steps)}\n    return min(coins.epsilon(delta=${at}).upper, gaussian.epsilon(mu=${mu(steps)} / ${sigma}, delta=${at}))\n\n`;
      if (unknown === "steps") return `import bisect\n${head}${spent("steps", number(values.sigma), "steps")}${largest(values, found)}`;
      const run = `dplib.MinSeparation(dplib.matrices.identity(${values.steps}), noise_multiplier=${number(values.sigma)}, sampling_probability=${coin(values)}, min_separation=${Math.min(b, values.steps)})`;
      return `${head}${spent("sigma", "sigma", values.steps)}print(spent(${number(values.sigma)}))\n${values.steps > MOST_ROUNDS ? "" : `# By sampling, a certificate: smaller, but wrong with a stated small probability; minutes for thousands of steps.\nprint(${run}.epsilon(delta=${at}, method="certificate").upper)`}`;
    };
    const next = ({ unknown }) => (unknown === "epsilon" ? "That one is the last line of the Python below." : "For that one ask for ε.");
    return { name: "pauses", make, python, next, kind: "upper bound: no pauses, or steps told; the library has a better one, by sampling", proof: PROOFS.pauses };
  }

  /** A run in two phases, to be edited: only Python. */
  function phased() {
    const { call } = MIXED;
    const python = (values) => {
      const first = Math.ceil(values.steps / 2), sigma = number(values.sigma);
      return `import dplib\n\n# Put your phases here: other noise, sampling or mechanisms, balls in bins included.\nfirst = ${call(values, `2 * ${sigma}`, first)}\nsecond = ${call(values, sigma, Math.max(values.steps - first, 1))}\nprint(dplib.compose([first, second]).epsilon(delta=${number(values.delta)}).upper)`;
    };
    return { name: "phases", library: true, python, kind: "exact, or the upper end where a phase has balls in bins", proof: PROOFS.phases };
  }

  /** Correlated noise: only Python; ask(values) makes the expression for epsilon or sigma from an encoder and its longest column. */
  function correlated(ask, head, kind, proof) {
    const python = (values) => {
      const { scheme, perEpoch, epochs, steps, separation } = values;
      const rounds = ["allocation", "pauses"].includes(scheme) ? steps : perEpoch * epochs, bands = Math.min(16, rounds, scheme === "pauses" ? separation : rounds);
      return `${head}\nencoder = dplib.matrices.optimal_counting(${rounds}, bands=${bands})  # put yours here\nlongest = encoder.column_norms().max()\nprint(${ask(values)})`;
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

  function pausedCorrelated(values) {
    const { batch, records, separation } = values;
    const run = (sigma) => `dplib.MinSeparation(encoder, noise_multiplier=${sigma}longest, sampling_probability=${batch} / (${records} - ${separation - 1} * ${batch}), min_separation=${Math.min(separation, values.steps)})`;
    return values.unknown === "sigma" ? `dplib.calibrate(${run("")}.poisson(), epsilon=${number(values.epsilon)}, delta=${number(values.delta)}).noise_multiplier / longest`
      : `${run(`${number(values.sigma)} * `)}.epsilon(delta=${number(values.delta)}, method="renyi").upper`;
  }

  const gaussianOf = (sensitivity) => (values) => {
    const many = values.group + values.others, length = `${many > 1 ? `${many} * ` : ""}${sensitivity(values)} / longest`;
    return values.unknown === "sigma" ? `${length} / gaussian.calibrate(epsilon=${number(values.epsilon)}, delta=${number(values.delta)})`
      : `gaussian.epsilon(mu=${length} / ${number(values.sigma)}, delta=${number(values.delta)})`;
  };
  const kept = (values) => `sensitivity.round_robin(encoder, ${values.perEpoch}, ${values.epochs})`;
  const anew = (values) => {
    const [part, block] = blockOf(values), apart = values.scheme === "pauses" ? block : 1;
    return `sensitivity.min_separation(encoder, ${apart}, ${Math.min(part * Math.ceil(values.steps / block), values.steps)}).upper`;
  };
  const WITH_SENSITIVITY = "import dplib\nfrom dplib import gaussian, sensitivity\n";

  // ------------------------------------------------------------------ the decision

  const refused = (why) => ({ name: "nothing proved", refused: why });
  /** What is left when the rounds of a record are told: a record that pauses may be in more of them than E. */
  const roundsTold = (scheme) => (scheme === "pauses" ? "pauses told" : "no amplification");

  /** scheme, unit, relation, released -> the ending, by the name that the chapter's list gives it. */
  function decide({ scheme, unit, relation, released, unknown }) {
    const swap = relation === "swap" || relation === "mix", group = unit === "group", many = group ? ", group" : "";
    if (scheme === "known" && (relation === "add" || relation === "mix")) {
      return refused(`Nothing is proved here for a record that is added to shuffled batches or taken out of them, since all others move${UNMOVED}.`);
    }
    if (released === "sums") return decideCorrelated({ scheme, group, swap, unknown });
    const alone = !group && !swap, open = `${roundsTold(scheme)}${swap ? ", swap" : many}`;
    if (scheme === "known" || (["allocation", "pauses"].includes(scheme) && !alone)) return told({ name: open, directions: scheme === "known" && !swap });
    if (scheme === "bins") {
      const bound = told({ name: swap ? "bins told, swap" : group ? "bins told, group" : "bins", kind: "upper bound: the one for known batches" });
      return alone ? tightened(bound, BINS, "exact, and smaller") : bound;
    }
    if (scheme === "allocation") return tightened(told({ name: "random allocation", kind: "upper bound: the one for known rounds", proof: PROOFS.random }), ALLOCATION, "an upper bound, and smaller");
    if (scheme === "pauses") return paused();
    if (scheme === "phases") return unknown === "epsilon" ? phased() : refused("Phases have several σ and T, so there is no single one to look for. Choose to find ε, and change a phase until it fits.");
    if (scheme === "truncated") {
      if (group || relation === "mix") return refused("Nothing is proved here for several records where batches are cut. Choose one record, or batches that are not cut.");
      const kind = "upper bound: half the noise", proof = PROOFS.cut;
      const bound = relation === "add" ? direct(HALVED, { kind, proof, directions: false }) : { ...swapped(HALVED), kind: `${kind}, and a swap`, proof };
      return { name: `truncated Poisson${{ add: "", zero: ", zero-out", swap: ", swap" }[relation]}`, ...tightened(bound, TRUNCATED, "smaller") };
    }
    if (scheme === "fixed") {
      if (relation === "add") return { name: `fixed batch${many}`, ...direct(FIXED, { kind: "exact", proof: PROOFS.fixed }) };
      if (group || relation === "mix") return { name: "fixed batch, several", ...swapped(FIXED) };
      return { name: "fixed batch, swap", ...tightened({ ...swapped(FIXED), proof: PROOFS.displacing }, REPLACED, "smaller") };
    }
    if (swap) return { name: relation === "mix" ? "Poisson, mixed" : "Poisson, swap", ...direct(MIXED, { kind: "exact", proof: PROOFS.twoSided, directions: false }) };
    if (released === "all" || group) return { name: `Poisson${many}`, ...direct(POISSON, { kind: "exact", proof: PROOFS.poisson }) };
    if (unknown === "steps") return refused("ε of the last iterate does not always grow with T, so there is no largest T to look for. Choose to find ε or σ at the T that you plan, or count all models as released.");
    return { name: "last iterate", ...direct(LAST, { kind: "exact, for linear losses", proof: PROOFS.last, directions: false }) };
  }

  function decideCorrelated({ scheme, group, swap, unknown }) {
    if (["fixed", "truncated", "phases"].includes(scheme)) return refused("Nothing is proved here for correlated noise with these batches. Choose Poisson sampling, balls in bins or pauses, or noise that is independent.");
    if (scheme === "poisson" && (group || swap)) return refused("With correlated noise and Poisson sampling only one record that is added, removed or zeroed out has a theorem here. Choose balls in bins, or noise that is independent.");
    if (unknown === "steps") return refused("An encoder belongs to one number of steps, so there is no largest T to look for. Choose to find ε or σ with the encoder of the T that you plan.");
    if (scheme === "poisson") return { name: "MMCC", ...correlated(matrixMechanism, "import dplib\n", "upper bound", PROOFS.mmcc) };
    const many = swap ? ", swap" : group ? ", group" : "";
    if (scheme !== "bins" && (many || scheme !== "pauses")) return { name: `${roundsTold(scheme)}${many}`, ...correlated(gaussianOf(anew), WITH_SENSITIVITY, "upper bound: batches told", PROOFS.told) };
    if (scheme === "pauses") return { name: "pauses, correlated", ...correlated(pausedCorrelated, "import dplib\n", "upper bound", PROOFS.pauses) };
    if (many) return { name: `bins told${many}`, ...correlated(gaussianOf(kept), WITH_SENSITIVITY, "upper bound: batches told", PROOFS.told) };
    return { name: "bins, correlated", ...correlated(certified, "import dplib\n", "certificate: an upper bound that is wrong with a stated small probability", PROOFS.bins) };
  }

  // ------------------------------------------------------------------ the assumptions in words

  const RELATIONS = {
    add: (many) => `The other world lacks ${many}; nothing else differs.`,
    zero: (many) => `In the other world the contributions of ${many} are 0; the number of records is the same.`,
    swap: (many) => `In the other world others stand in the place of ${many}.`,
    mix: (many, others) => `The other world lacks ${many}, and up to ${others} ${others > 1 ? "others are" : "other is"} there instead.`,
  };
  const RELEASED = {
    all: "Every noisy sum may be known, and with it every model.",
    last: "That only the final model is known counts for Poisson sampling with one record added, removed or zeroed out; the gradients must not depend on the model.",
    sums: "σ is the noise over the clip norm and over the longest column of the encoder.",
  };

  function assumptions({ scheme, relation, released, group, others }) {
    const many = group > 1 ? `up to ${group} records together` : "the record";
    return [SCHEMES[scheme].words, RELATIONS[relation](many, others), RELEASED[released],
      "Each gradient is clipped to norm 1 and summed; Gaussian noise of standard deviation σ is added to the sum; what follows, such as a division, does not look at the data."].join(" ");
  }

  root.WizardEndings = { decide, assumptions, SCHEMES };
})(window);
