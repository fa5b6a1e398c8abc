// The top-level setting `enrichment_tables`: named tables in which programs look up values.

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
              path: path('Path of the file. The agent reads it again when it reloads the configuration.', {
                use: 'read',
              }),
              encoding: group(
                {
                  type: oneOf(['csv'], 'Format of the file.', { default: 'csv' }),
                  delimiter: text('Character between the columns.', { default: ',' }),
                  include_headers: bool(
                    'Whether the first record contains the names of the columns. If false, the names are `0`, `1`, ….',
                    { default: true },
                  ),
                },
                'Encoding of the file.',
              ),
            },
            'The file with the records.',
          ),
          schema: map(
            text('`string`, `integer`, `float`, `boolean`, `date`, `timestamp`, or `date|FORMAT`, `timestamp|FORMAT`.'),
            'Types of columns. All other columns are strings.',
            { default: {} },
          ),
        },
        geoip: {
          path: path('Path of the database, in the MMDB format.', { use: 'read' }),
          locale: text('Language of names. If the database has no name in this language, the English name is used.', {
            default: 'en',
          }),
        },
        mmdb: {
          path: path('Path of the database, in the MMDB format. Records are returned unchanged.', { use: 'read' }),
        },
        memory: {
          inputs: list(
            text('Id of a component.'),
            'Components whose events fill the table. Each field of an event becomes an entry.',
          ),
          ttl: uint('Seconds after which an entry expires.', { default: 600, minimum: 1 }),
          scan_interval: uint('Minimum seconds between two searches for expired entries.', {
            default: 30,
            minimum: 1,
          }),
          max_byte_size: uint(
            'Maximum size of all keys and values in bytes, plus 150 bytes for each entry. Entries beyond it are discarded.',
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
