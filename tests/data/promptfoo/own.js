module.exports = (output, context) => ({ pass: output.length > 3, score: 1, reason: context.vars.country });
