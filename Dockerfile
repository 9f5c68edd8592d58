# One image for Airflow and Spark: the driver, the executors and every Airflow process run the same versions.
FROM apache/airflow:slim-3.3.2-python3.11 AS wheel

WORKDIR /tmp/concord
COPY --chown=airflow:0 requirements-build.txt ./
RUN python3.11 -m venv /tmp/build \
    && /tmp/build/bin/pip install --no-cache-dir --require-hashes -r requirements-build.txt
COPY --chown=airflow:0 pyproject.toml README.md LICENSE requirements.in requirements-spark.in requirements-demo.in ./
COPY --chown=airflow:0 plugins/ plugins/
COPY --chown=airflow:0 spark_jobs/ spark_jobs/
RUN /tmp/build/bin/python -m build --wheel --no-isolation --outdir /tmp/wheel

FROM apache/airflow:slim-3.3.2-python3.11

USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner=airflow --group=0 --mode=0755 /opt/concord \
    && install --directory --owner=airflow --group=0 --mode=0700 /opt/airflow/auth

USER airflow

# An environment of its own, because the base image's packages follow other pins. It holds requirements.txt and Concord:
# what the tests ran with, and nothing of the demo. `pip check` fails the build when a package disagrees with another.
COPY --chown=airflow:0 requirements.txt /opt/concord/requirements.txt
RUN python3.11 -m venv /opt/concord/venv \
    && /opt/concord/venv/bin/pip install --no-cache-dir --require-hashes -r /opt/concord/requirements.txt
COPY --from=wheel --chown=airflow:0 /tmp/wheel/ /opt/concord/wheel/
RUN /opt/concord/venv/bin/pip install --no-cache-dir --no-index --no-deps /opt/concord/wheel/*.whl \
    && /opt/concord/venv/bin/pip check
ENV VIRTUAL_ENV=/opt/concord/venv
ENV PATH=/opt/concord/venv/bin:$PATH

WORKDIR /opt/airflow
COPY --chown=airflow:0 dags/ dags/
COPY --chown=airflow:0 compose/ compose/
ENV PYSPARK_PYTHON=/opt/concord/venv/bin/python
ENV PYSPARK_DRIVER_PYTHON=/opt/concord/venv/bin/python
