// The top-level setting `enrichment_tables`: tables by name, in which programs look values up.

import {
  bool,
  group,
  list,
  map,
  type OptionValue,
  oneOf,
  optional,
  path,
  tagged,
  text,
  uint,
} from '../schema/options.ts'

export const enrichmentOption = optional(
  map(
    tagged(
      'type',
      {
        file: {
          file: group(
            {
              path: path('The file. It is read again when the configuration is.', { use: 'read' }),
              encoding: group(
                {
                  type: oneOf(['csv'], 'Format of the file.', { default: 'csv' }),
                  delimiter: text('One character between the columns.', { default: ',' }),
                  include_headers: bool(
                    'Whether the first record has the names of the columns; otherwise they are `0`, `1`, ….',
                    { default: true },
                  ),
                },
                'How the file is written.',
              ),
            },
            'Where the records are.',
          ),
          schema: map(
            text('`string`, `integer`, `float`, `boolean`, `date`, `timestamp`, or `date|FORMAT`, `timestamp|FORMAT`.'),
            'Types of columns. Columns that are not named are texts.',
            { default: {} },
          ),
        },
        geoip: {
          path: path('The database, in the MMDB format.', { use: 'read' }),
          locale: text('Language of names. A name that the database lacks in this language is given in English.', {
            default: 'en',
          }),
        },
        mmdb: { path: path('The database, in the MMDB format. Records are given as they are.', { use: 'read' }) },
        memory: {
          inputs: list(
            text('Id of a component.'),
            'Components whose events are written to the table: each field is an entry.',
          ),
          ttl: uint('Seconds that an entry lives after it was written.', { default: 600, minimum: 1 }),
          scan_interval: uint('Seconds between two searches for entries whose time is over.', {
            default: 30,
            minimum: 1,
          }),
          max_byte_size: uint(
            'Bytes of keys and values that the table holds, with 150 for each entry; what comes then is discarded.',
            { default: 67_108_864 },
          ),
        },
      },
      'A table.',
    ),
    'Tables for `find_enrichment_table_records` and `get_enrichment_table_record`, by name.',
  ),
)

export type TableOptions = NonNullable<OptionValue<typeof enrichmentOption>>[string]
export type TableOptionsOf<Type extends TableOptions['type']> = Extract<TableOptions, { readonly type: Type }>
