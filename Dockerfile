# One image for Airflow and Spark: the driver, the executors and every Airflow process run the same versions.
FROM apache/airflow:slim-3.3.2-python3.11

USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner=airflow --group=0 --mode=0755 /opt/concord \
    && install --directory --owner=airflow --group=0 --mode=0700 /opt/airflow/auth

USER airflow

# An environment of its own, because the base image's packages follow other pins. It holds requirements.txt and nothing
# else: what the tests ran with. `pip check` fails the build when a package disagrees with Airflow's own requirements.
COPY --chown=airflow:0 requirements.txt /opt/concord/requirements.txt
RUN python3.11 -m venv /opt/concord/venv \
    && /opt/concord/venv/bin/pip install --no-cache-dir --require-hashes -r /opt/concord/requirements.txt \
    && /opt/concord/venv/bin/pip check
ENV VIRTUAL_ENV=/opt/concord/venv
ENV PATH=/opt/concord/venv/bin:$PATH

# The same layout as the source tree, so that paths relative to the project hold here too.
WORKDIR /opt/airflow
COPY --chown=airflow:0 dags/ dags/
COPY --chown=airflow:0 plugins/ plugins/
COPY --chown=airflow:0 spark_jobs/ spark_jobs/
COPY --chown=airflow:0 config/ config/
COPY --chown=airflow:0 compose/ compose/
ENV PYTHONPATH=/opt/airflow/plugins:/opt/airflow
ENV PYSPARK_PYTHON=/opt/concord/venv/bin/python
ENV PYSPARK_DRIVER_PYTHON=/opt/concord/venv/bin/python
# Whoever runs this may not write here, and Python would compile all of it at the start of every link.
RUN python -m compileall -q plugins spark_jobs
# Every link's Java then starts in half the time.
RUN python -m spark_jobs.archive
