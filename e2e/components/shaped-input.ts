// Input for tests of sinks: JSON events from standard input, with an instant as timestamp, and without fields of the source.

/** The source, and the transform `shape`, which sinks read. */
export const shapedInput = {
  sources: { in: { type: 'stdin', decoding: { codec: 'json' }, host_key: '' } },
  transforms: {
    shape: {
      type: 'remap',
      inputs: ['in'],
      source: 'del(.source_type)\n.timestamp = parse_timestamp!(.timestamp, format: "%+")',
    },
  },
}
